"""The benchmarks are run from a checkout, never installed: let the tests import them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

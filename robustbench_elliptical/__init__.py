"""Robustness evaluation for Elliptical Attention and its baselines.

The public entry points are `robustbench_elliptical.models.load_model`, the functions in
`robustbench_elliptical.attacks` and `robustbench_elliptical.evaluation.evaluate`. This module
imports nothing heavy, so that the command line answers at once.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]

"""Lines of text files, as `robustbench_elliptical.core.text` reads them."""

from robustbench_elliptical.core.text.files import read_lines

__all__ = ["read_lines"]

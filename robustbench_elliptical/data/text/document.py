"""A document, as `robustbench_elliptical.core.text` defines it."""

from robustbench_elliptical.core.text.document import EOS, UNK, Document

__all__ = ["EOS", "UNK", "Document"]

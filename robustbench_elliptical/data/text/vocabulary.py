"""A vocabulary, as `robustbench_elliptical.core.text` defines it."""

from robustbench_elliptical.core.text.vocabulary import Vocabulary

__all__ = ["Vocabulary"]

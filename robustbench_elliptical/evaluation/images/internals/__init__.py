"""What goes on inside image classifiers on a few examples, clean and under attack."""

from robustbench_elliptical.evaluation.images.internals.witness import Pictures, Witness

__all__ = ["Pictures", "Witness"]

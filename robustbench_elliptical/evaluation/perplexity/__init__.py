"""The one place where a perplexity is measured: windows, and the losses of their targets."""

from robustbench_elliptical.evaluation.perplexity.gradients import SequenceGradient, loss_gradient
from robustbench_elliptical.evaluation.perplexity.scoring import (
    SequenceLosses,
    TokenScorer,
    sequence_losses,
)
from robustbench_elliptical.evaluation.perplexity.windows import Window, check_stride, windows

__all__ = [
    "SequenceGradient",
    "SequenceLosses",
    "TokenScorer",
    "Window",
    "check_stride",
    "loss_gradient",
    "sequence_losses",
    "windows",
]

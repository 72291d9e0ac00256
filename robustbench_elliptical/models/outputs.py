"""Find the logits in whatever a network returns."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from robustbench_elliptical.core.errors import UsageError

__all__ = ["unwrap_logits"]


def unwrap_logits(output: Any, num_classes: int, name: str) -> Tensor:
    """Return the logits, shape (batch, `num_classes`), of a network's output.

    Parameters
    ----------
    output
        A tensor, a dictionary or object with ``logits``, or a tuple or list that starts with them.
    num_classes
        The number of logits expected.
    name
        The model's name, for messages.

    Raises
    ------
    UsageError
        If there are no logits of that shape.
    """
    logits = output
    if isinstance(output, Mapping):
        logits = output.get("logits")
    elif hasattr(output, "logits"):
        logits = output.logits
    elif isinstance(output, tuple | list) and output:
        logits = output[0]
    if not isinstance(logits, Tensor):
        raise UsageError(
            f"model {name} must return logits: a tensor, something with .logits or ['logits'], or "
            f"a tuple that starts with them, got {type(output).__name__}"
        )
    if logits.ndim != 2 or logits.shape[1] != num_classes:
        raise UsageError(
            f"model {name} must return logits of shape (batch, {num_classes}), "
            f"got {tuple(logits.shape)}"
        )
    return logits

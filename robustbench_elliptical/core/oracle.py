"""What an attack may ask of a model: logits, for rows whose samples it names.

An attack works on shrinking sets of samples and on many copies of one sample. It says which sample
each row belongs to, so that a counting oracle can charge the pass to that sample and a model that
draws numbers for each sample gets the right ones.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

__all__ = ["CallableOracle", "DrawingOracle", "LogitsFunction", "Oracle", "as_oracle"]

LogitsFunction = Callable[[Tensor], Tensor]


@runtime_checkable
class Oracle(Protocol):
    """Answers with logits."""

    def logits(self, images: Tensor, rows: Tensor) -> Tensor:
        """Return logits, shape (rows, classes).

        Parameters
        ----------
        images
            Shape (rows, channels, height, width), pixels in [0, 1].
        rows
            Which of the attack's inputs each image stems from, int64, shape (rows,).
        """
        ...


@runtime_checkable
class DrawingOracle(Oracle, Protocol):
    """Answers for a model that draws at random; `logits` always answers under one fixed draw."""

    def logits_of_draw(self, images: Tensor, rows: Tensor, draw: int) -> Tensor:
        """Return the logits under another draw.

        Parameters
        ----------
        images, rows
            As of `logits`.
        draw
            Which one, counted from 1; none is that of `logits`.
        """
        ...


class CallableOracle:
    """An oracle around any function from images to logits."""

    def __init__(self, function: LogitsFunction) -> None:
        self._function = function

    def logits(self, images: Tensor, rows: Tensor) -> Tensor:
        """Return the function's logits; `rows` is not needed."""
        del rows
        return self._function(images)


def as_oracle(model: LogitsFunction | Oracle) -> Oracle:
    """Return `model` itself if it is an oracle, else one around it."""
    return model if isinstance(model, Oracle) else CallableOracle(model)

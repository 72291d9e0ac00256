"""Where the windows over a sequence lie, and which of their positions are scored."""

from collections.abc import Iterator
from typing import NamedTuple

from robustbench_elliptical.core.errors import UsageError

__all__ = ["Window", "check_stride", "windows"]


class Window(NamedTuple):
    """Part of a sequence's inputs, read at once."""

    start: int
    """Its first input."""
    stop: int
    """One past its last input."""
    first: int
    """The first of its positions that is scored; every later one is scored too."""

    @property
    def length(self) -> int:
        """How many inputs are read."""
        return self.stop - self.start


def check_stride(window: int, stride: int) -> None:
    """Refuse a stride that would leave targets out.

    Raises
    ------
    UsageError
        Unless 1 <= stride <= window.
    """
    if not 1 <= stride <= window:
        raise UsageError(
            f"stride must be at least 1 and at most the window of {window} tokens, got {stride}; a "
            "smaller one gives every token more context and takes longer"
        )


def windows(length: int, window: int, stride: int) -> Iterator[Window]:
    """Yield windows that score every target of a sequence once.

    The first window is scored whole. Each later one starts `stride` further on and is scored from
    where the one before it ended, so that every target outside the first window sees at least
    window - stride inputs before its own. Stride 1 is the published protocol of WikiText-103 (after
    the first window, the last position of each), stride = window reads every input once.

    Parameters
    ----------
    length
        Number of inputs.
    window
        Inputs read at once, at most.
    stride
        Inputs by which the window moves.

    Raises
    ------
    UsageError
        Unless 1 <= stride <= window.
    """
    check_stride(window, stride)
    scored, start = 0, 0
    while scored < length:
        stop = min(start + window, length)
        yield Window(start, stop, scored - start)
        scored, start = stop, start + stride

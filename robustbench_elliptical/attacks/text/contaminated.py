"""What a contamination returns: the text, and which of its words are no longer its own."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Contaminated", "ContaminatedTokens", "Swaps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Swaps:
    """Which words of a document were swapped."""

    swapped: npt.NDArray[np.bool_]
    """Whether each position holds another word than before, shape (words,)."""
    eligible: npt.NDArray[np.bool_]
    """Whether it could have, shape (words,)."""
    line_ends: npt.NDArray[np.bool_]
    """Whether it holds ``<eos>``, shape (words,)."""

    @property
    def realised_rate(self) -> float:
        """Swapped words over eligible ones; 0 where none is eligible."""
        return _share(self.swapped, self.eligible)

    @property
    def realised_share(self) -> float:
        """Swapped words over all but ``<eos>``, punctuation included; 0 where there are none."""
        return _share(self.swapped, ~self.line_ends)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contaminated(Swaps):
    """A contaminated document as words."""

    words: tuple[str, ...]
    """As many as before."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ContaminatedTokens(Swaps):
    """A contaminated document as numbers of a vocabulary."""

    tokens: npt.NDArray[np.int64]
    """As many as before."""


def _share(part: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> float:
    return int(np.count_nonzero(part)) / max(int(np.count_nonzero(whole)), 1)

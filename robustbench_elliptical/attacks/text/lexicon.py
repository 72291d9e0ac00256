"""The vocabulary that a contamination draws words from and looks numbers up in."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.traits import UNKNOWN, Traits, traits_of
from robustbench_elliptical.core.errors import UsageError

__all__ = ["Lexicon", "WordTable", "word_table"]


class Lexicon(Protocol):
    """Any vocabulary that counts its words."""

    def __hash__(self) -> int: ...

    @property
    def words(self) -> Sequence[str]:
        """The words in the order of their numbers."""
        ...

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How often each was seen, shape (words,)."""
        ...

    @property
    def index(self) -> Mapping[str, int]:
        """Number by word."""
        ...


class WordTable:
    """A lexicon prepared for swapping.

    Parameters
    ----------
    lexicon
        The vocabulary; it must not change afterwards.

    Attributes
    ----------
    lexicon
        The vocabulary.
    traits
        The traits of its words.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.traits: Traits = traits_of(lexicon.words)
        # The last entry stands for a word outside the lexicon, number -1.
        self._counts = np.append(np.where(self.traits.swappable, lexicon.counts, 0), 0)
        self._ends = np.cumsum(self._counts)

    def number(self, word: str) -> int:
        """Return the number of a word, that of ``<unk>`` if the lexicon lacks it."""
        index = self.lexicon.index
        return index[word] if word in index else index[UNKNOWN]

    def numbers(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of each word, -1 for one outside the lexicon."""
        index = self.lexicon.index
        return np.array([index.get(word, -1) for word in words], dtype=np.int64)

    def others(
        self, own: npt.NDArray[np.int64], draws: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.int64]:
        """Draw a word for each of `own` by unigram frequency, never that word itself.

        Protected words are not drawn. The chance of a word is its count over the counts of all
        words but the own one.

        Parameters
        ----------
        own
            Numbers of words, -1 for one outside the lexicon.
        draws
            64 random bits for each.

        Raises
        ------
        UsageError
            If fewer than two words can be drawn.
        """
        if np.count_nonzero(self._counts) < 2:
            raise UsageError(
                "replacement random-word needs a vocabulary with the counts of at least two words; "
                "use replacement=AAA or unk"
            )
        own_counts = self._counts[own]
        own_starts = self._ends[own] - own_counts
        rest = self._ends[-1] - own_counts
        targets = (draws % rest.astype(np.uint64)).astype(np.int64)
        targets += np.where(targets >= own_starts, own_counts, 0)
        numbers: npt.NDArray[np.int64] = np.searchsorted(self._ends, targets, side="right")
        return numbers


@lru_cache(maxsize=4)
def word_table(lexicon: Lexicon) -> WordTable:
    """Return the table of a lexicon; those of the last few lexicons are kept."""
    return WordTable(lexicon)

"""Which words may be swapped.

A token is a word if it holds a letter or a digit. Line ends, ``<unk>`` and everything without one
(punctuation, ``=``, ``@-@``) are protected, for every attack.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LINE_END", "UNKNOWN", "Traits", "stop_words", "traits_of"]

LINE_END = "<eos>"
UNKNOWN = "<unk>"

_PIECE = re.compile(r"[^\W_](?:[\w'*@-]*[^\W_])?")
"""What TextAttack takes for a word: letters and digits, with ``'_*@-`` between them."""


class Traits(NamedTuple):
    """What a contamination knows of each token of a document, or of each word of a vocabulary."""

    swappable: npt.NDArray[np.bool_]
    """Whether it is a word and not protected."""
    content: npt.NDArray[np.bool_]
    """Whether it is swappable and no stop word."""
    pieces: npt.NDArray[np.int32]
    """How many words TextAttack sees in it: ``N.B`` is two, ``<unk>`` is one."""
    line_ends: npt.NDArray[np.bool_]
    """Whether it is ``<eos>``."""

    def take(self, tokens: npt.NDArray[np.int64]) -> "Traits":
        """Look the traits of tokens up, where these are a vocabulary's."""
        return Traits(
            swappable=self.swappable[tokens],
            content=self.content[tokens],
            pieces=self.pieces[tokens],
            line_ends=self.line_ends[tokens],
        )


def traits_of(words: Sequence[str]) -> Traits:
    """Return the traits of each word."""
    rows = np.fromiter(map(_coded, words), dtype=np.int32, count=len(words))
    return Traits(
        swappable=(rows & 1).astype(np.bool_),
        content=(rows & 2).astype(np.bool_),
        pieces=rows >> 3,
        line_ends=(rows & 4).astype(np.bool_),
    )


@cache
def stop_words() -> frozenset[str]:
    """Return the English stop words, in lower case.

    These are the 179 words of NLTK's English list: Martin Porter's list for Snowball, enlarged by
    contractions and their parts.
    """
    file = files("robustbench_elliptical.attacks.text") / "stop-words-english.txt"
    return frozenset(file.read_text(encoding="utf-8").split())


@lru_cache(maxsize=1 << 18)
def _coded(word: str) -> int:
    """Pack the traits of a word into one number: three flags, then the number of pieces."""
    if word == LINE_END:
        return 4
    pieces = _PIECE.findall(word)
    swappable = bool(pieces) and word != UNKNOWN
    content = swappable and not stop_words().issuperset(pieces)
    return swappable | content << 1 | len(pieces) << 3

"""A document: the words of a text as a language model meets them."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["EOS", "UNK", "Document"]

EOS = "<eos>"
"""The word at the end of every line."""
UNK = "<unk>"
"""The word that stands for every word outside the vocabulary."""


class Document(NamedTuple):
    """One article, address or file."""

    id: str
    """The same in every run and on every machine; contamination is keyed on it."""
    words: tuple[str, ...]
    """Every word in order, `EOS` at the end of each line."""
    glued: bytes = b""
    """For each word 1 where no space stands before it (``country`` ``.``), else 0; empty where
    every word stands alone."""

    def text(self, words: Sequence[str] | None = None) -> str:
        """Write the document as running text, one line for each `EOS`.

        Spaces are as in the source but for their number. A tokenizer of another kind reads this,
        and its bytes are what a perplexity per byte divides by.

        Parameters
        ----------
        words
            Stand in for the document's own words, position by position; `EOS` stays.

        Raises
        ------
        ValueError
            If their number is not the document's.
        """
        return "".join(self.pieces(words))

    def pieces(self, words: Sequence[str] | None = None) -> list[str]:
        """Return what each word adds to `text`: the space before it and the word, or a line feed.

        Parameters
        ----------
        words
            As for `text`.

        Raises
        ------
        ValueError
            As from `text`.
        """
        chosen = self.words if words is None else words
        if len(chosen) != len(self.words):
            raise ValueError(f"{self.id} has {len(self.words)} words, got {len(chosen)}")
        pieces = []
        line_start = True
        for position, (own, word) in enumerate(zip(self.words, chosen, strict=True)):
            if own == EOS:
                pieces.append("\n")
            elif line_start or (self.glued and self.glued[position]):
                pieces.append(word)
            else:
                pieces.append(f" {word}")
            line_start = own == EOS
        return pieces

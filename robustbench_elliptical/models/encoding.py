"""How a document becomes a language model's tokens."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.text import Document, Vocabulary

__all__ = ["DocumentEncoder", "EncodedDocument", "WordEncoder"]


class EncodedDocument(NamedTuple):
    """A document as a model reads it."""

    tokens: npt.NDArray[np.int64]
    """Shape (tokens,)."""
    word_of_token: npt.NDArray[np.int64]
    """Position in the document of the word that each token belongs to, shape (tokens,)."""
    words: int
    """Words of the document, ends of lines included."""
    bytes: int
    """UTF-8 bytes of its running text."""


class DocumentEncoder(Protocol):
    """A vocabulary of words, or a tokenizer of smaller pieces."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words, where every token is one; none for smaller pieces."""
        ...

    @property
    def prefix(self) -> int | None:
        """The token that stands before a document's first one, if there is one for that."""
        ...

    @property
    def size(self) -> int:
        """Number of different tokens."""
        ...

    def encode(self, document: Document, words: Sequence[str] | None = None) -> EncodedDocument:
        """Return a document's tokens, with `words` in place of its own if given.

        Raises
        ------
        ValueError
            If there are more or fewer `words` than the document has.
        """
        ...


class WordEncoder:
    """One token for each word.

    Parameters
    ----------
    vocabulary
        Numbers the words; those it lacks become its unknown word.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary: Vocabulary | None = vocabulary
        self._known = vocabulary
        self.prefix: int | None = vocabulary.eos
        self.size = len(vocabulary)

    def encode(self, document: Document, words: Sequence[str] | None = None) -> EncodedDocument:
        """Return one token for each word; see `DocumentEncoder`."""
        size = len(document.text(words).encode())
        tokens = self._known.encode(document.words if words is None else words)
        return EncodedDocument(tokens, np.arange(len(tokens), dtype=np.int64), len(tokens), size)

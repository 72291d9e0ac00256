"""A fast tokenizer of the transformers library as a document encoder."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.text import Document, Vocabulary
from robustbench_elliptical.models.encoding import EncodedDocument

__all__ = ["SubwordEncoder"]


class SubwordEncoder:
    """Pieces of words, as a tokenizer cuts a document's running text.

    Parameters
    ----------
    tokenizer
        A fast tokenizer: it tells where in the text each token lies.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.vocabulary: Vocabulary | None = None
        self.size = len(tokenizer)
        first = tokenizer.bos_token_id
        self.prefix: int | None = tokenizer.eos_token_id if first is None else first
        self._tokenizer = tokenizer

    def encode(self, document: Document, words: Sequence[str] | None = None) -> EncodedDocument:
        """Return the tokens of ``document.text(words)``; see `DocumentEncoder`.

        Nothing is added to them, and what looks like a special token is text. A token belongs to
        the word that holds its first character, spaces apart, and a line feed to the `EOS` there.
        """
        pieces = document.pieces(words)
        text = "".join(pieces)
        encoded = self._tokenizer(
            text,
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )
        starts = np.array([start for start, _ in encoded["offset_mapping"]], dtype=np.int64)
        return EncodedDocument(
            np.array(encoded["input_ids"], dtype=np.int64),
            _words_at(starts, pieces, text),
            len(pieces),
            len(text.encode()),
        )


def _words_at(
    starts: npt.NDArray[np.int64], pieces: Sequence[str], text: str
) -> npt.NDArray[np.int64]:
    """Return which piece holds the first character from each start on that is no space."""
    owners = np.repeat(np.arange(len(pieces), dtype=np.int64), [len(piece) for piece in pieces])
    if not len(owners):
        return np.zeros(len(starts), dtype=np.int64)
    spaces = np.array([character == " " for character in text])
    places = np.where(spaces, len(text) - 1, np.arange(len(text)))
    following = np.minimum.accumulate(places[::-1])[::-1]
    return owners[following[np.minimum(starts, len(text) - 1)]]

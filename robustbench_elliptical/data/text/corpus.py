"""What a corpus of text is, for the rest of the toolkit.

Documents are read one after the other, as often as they are asked for, so that a corpus of any size
streams.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text.document import EOS, UNK, Document
from robustbench_elliptical.data.text.vocabulary import Vocabulary

__all__ = ["SplitName", "TextCorpus", "TextSplit"]

SplitName = Literal["train", "valid", "test"]
"""The part to learn from, to choose by, and to report on."""


class TextCorpus(ABC):
    """A text in three parts.

    Parameters
    ----------
    name
        How the user named it ("sotu", "wikitext:DIR").
    min_count
        How often a word must occur in the training part to be in the corpus's vocabulary.
    """

    def __init__(self, name: str, min_count: int) -> None:
        self.name = name
        self.min_count = min_count

    @abstractmethod
    def documents(self, split: SplitName) -> Iterator[Document]:
        """Yield the documents of a part, in the order of the source.

        Raises
        ------
        UsageError
            If a file is missing, can't be read or is not UTF-8.
        """

    def split(self, split: SplitName) -> "TextSplit":
        """Return one part; raises `UsageError` if there is none of that name."""
        if split not in get_args(SplitName):
            raise UsageError(f"split must be train, valid or test, got {split!r}")
        return TextSplit(self, split)

    def vocabulary(self, min_count: int | None = None) -> Vocabulary:
        """Count the vocabulary of the training part.

        Parameters
        ----------
        min_count
            How often a word must occur; the corpus's own number if None.

        Raises
        ------
        UsageError
            If the part has no words or can't be read.
        """
        train = self.split("train")
        train.check()
        least = self.min_count if min_count is None else min_count
        return Vocabulary.count((document.words for document in train), least)


@dataclass(frozen=True)
class TextSplit:
    """One part of a corpus; each iteration reads it again."""

    corpus: TextCorpus
    split: SplitName

    @property
    def name(self) -> str:
        """The corpus and the part, for messages and results: ``sotu (test)``."""
        return f"{self.corpus.name} ({self.split})"

    def __iter__(self) -> Iterator[Document]:
        return self.corpus.documents(self.split)

    def tokens(self, vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
        """Return the numbers of all words in one array, holding one document's words at a time.

        Raises
        ------
        UsageError
            If there are no words or the vocabulary knows none of them.
        """
        self.check(vocabulary)
        numbers = array("q")
        for document in self:
            numbers.frombytes(vocabulary.encode(document.words).tobytes())
        return np.frombuffer(numbers, dtype=np.int64)

    def check(self, vocabulary: Vocabulary | None = None) -> None:
        """Refuse a text that no perplexity can be measured on; reads up to the first known word.

        Parameters
        ----------
        vocabulary
            What a model knows; None if every word other than `UNK` is good.

        Raises
        ------
        UsageError
            If there are no words, or all of them are `UNK` or outside the vocabulary.
        """
        empty = True
        for document in self:
            for word in document.words:
                if word not in (EOS, UNK) and (vocabulary is None or word in vocabulary):
                    return
                empty = empty and word == EOS
        if empty:
            raise UsageError(f"text {self.name} has no words; give a file that holds some")
        reason = (
            "the file was written with another vocabulary"
            if vocabulary is None
            else "it is in another language than the vocabulary, or split into words otherwise"
        )
        raise UsageError(f"text {self.name}: every word is {UNK}; {reason}")

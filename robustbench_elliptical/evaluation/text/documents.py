"""The documents of an evaluation: drawn by the seed, cut to length, hashed."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from robustbench_elliptical.core.randomness import keyed_generator
from robustbench_elliptical.data.text import EOS, Document, TextSplit

__all__ = ["DocumentHash", "Reading", "groups"]


@dataclass(frozen=True)
class Reading:
    """Which documents of a text are read; each iteration reads them again."""

    text: TextSplit
    limit: int | None
    """Most documents, drawn without replacement; all if None."""
    words: int | None
    """Words of each, from its start; all if None."""
    seed: int
    """Of the draw."""

    def __iter__(self) -> Iterator[Document]:
        chosen = self._chosen()
        for number, document in enumerate(each for each in self.text if each.words):
            if chosen is None or number in chosen:
                yield self._cut(document)

    def __len__(self) -> int:
        present = sum(1 for each in self.text if each.words)
        return present if self.limit is None else min(present, self.limit)

    def _chosen(self) -> frozenset[int] | None:
        if self.limit is None:
            return None
        present = sum(1 for each in self.text if each.words)
        if present <= self.limit:
            return None
        draw = keyed_generator(self.seed, "documents", 0)
        return frozenset(draw.permutation(present)[: self.limit].tolist())

    def _cut(self, document: Document) -> Document:
        if self.words is None or len(document.words) <= self.words:
            return document
        return Document(document.id, document.words[: self.words], document.glued[: self.words])


class DocumentHash:
    """A running SHA-256 over the ids and words of the documents seen."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.documents = 0
        """Documents seen so far."""
        self.words = 0
        """Their words, ends of lines included."""

    def update(self, document: Document) -> None:
        """Add a document."""
        self.documents += 1
        self.words += len(document.words)
        self._hash.update("\0".join((document.id, *document.words, EOS, "")).encode())

    def hexdigest(self) -> str:
        """Return the hash so far."""
        return self._hash.hexdigest()


def groups(documents: Iterable[Document], words: int | None) -> Iterator[Sequence[Document]]:
    """Yield documents together until they have `words` words; all in one if None."""
    waiting: list[Document] = []
    size = 0
    for document in documents:
        waiting.append(document)
        size += len(document.words)
        if words is not None and size >= words:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting

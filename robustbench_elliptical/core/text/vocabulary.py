"""The words that a language model knows, numbered by how often they occur."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.files import existing, reading
from robustbench_elliptical.core.text.document import EOS, UNK
from robustbench_elliptical.core.text.files import read_lines

__all__ = ["Vocabulary"]


class Vocabulary:
    """Words by number and numbers by word.

    Parameters
    ----------
    words
        In the order of their numbers, `EOS` and `UNK` among them.
    counts
        How often each was seen; none where nobody knows, and every count is then 0.
    name
        What the words come from, for messages.

    Raises
    ------
    UsageError
        If a word is empty, holds white space or stands twice, `EOS` or `UNK` is missing, or
        counts and words differ in number.

    Attributes
    ----------
    words
        tuple of str.
    counts
        int64, shape (words,).
    index
        Number by word.
    eos, unk
        The numbers of `EOS` and `UNK`.
    """

    def __init__(
        self, words: Sequence[str], counts: Sequence[int] | None = None, name: str = "vocabulary"
    ) -> None:
        self.words = tuple(words)
        self.counts = np.asarray(
            [0] * len(self.words) if counts is None else counts, dtype=np.int64
        )
        self.index: Mapping[str, int] = {word: place for place, word in enumerate(self.words)}
        self._check(name)
        self.eos = self.index[EOS]
        self.unk = self.index[UNK]

    @classmethod
    def count(cls, texts: Iterable[Iterable[str]], min_count: int = 1) -> Self:
        """Count the words of some texts.

        Words come in order of decreasing count, then of their characters. Those seen fewer than
        `min_count` times are counted as `UNK`, and so is `UNK` itself; `EOS` counts like any word.

        Parameters
        ----------
        texts
            The words of each document.
        min_count
            How often a word must be seen to be known.

        Raises
        ------
        UsageError
            If `min_count` is below 1.
        """
        if min_count < 1:
            raise UsageError(f"min_count must be at least 1, got {min_count}")
        seen: Counter[str] = Counter()
        for words in texts:
            seen.update(words)
        special = {EOS: seen.pop(EOS, 0), UNK: seen.pop(UNK, 0)}
        known = {word: count for word, count in seen.items() if count >= min_count}
        special[UNK] += seen.total() - sum(known.values())
        ranked = sorted((known | special).items(), key=lambda item: (-item[1], item[0]))
        return cls([word for word, _ in ranked], [count for _, count in ranked])

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a vocabulary from a file of one word a line, each with its count or none with one.

        Raises
        ------
        UsageError
            If the file is missing or not as described.
        """
        existing(path, "file", "give the vocabulary that lies beside the model's weights")
        rows = [line.split() for line in read_lines(path)]
        width = len(rows[0]) if rows else 0
        for number, row in enumerate(rows, 1):
            if width not in (1, 2) or len(row) != width or not all(map(str.isdecimal, row[1:])):
                raise UsageError(
                    f"vocabulary {path}, line {number}: must be a word and its count, in every "
                    f"line or in none, got {' '.join(row)!r}"
                )
        counts = [int(row[1]) for row in rows] if width == 2 else None
        return cls([row[0] for row in rows], counts, f"vocabulary {path}")

    def save(self, path: Path) -> None:
        """Write a file that `load` reads: ``word count`` in each line, in the order of numbers."""
        pairs = zip(self.words, self.counts.tolist(), strict=True)
        with reading(path):
            path.write_text(
                "".join(f"{word} {count}\n" for word, count in pairs),
                encoding="utf-8",
                newline="\n",
            )

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def encode(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of each word, that of `UNK` for a word outside the vocabulary."""
        numbers = map(self.index.get, words, repeat(self.unk))
        return np.fromiter(numbers, dtype=np.int64, count=len(words))

    def decode(self, tokens: npt.NDArray[np.integer]) -> list[str]:
        """Return the word of each number; raises `IndexError` for a number that has none."""
        numbers = tokens.tolist()
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(self):
            raise IndexError(f"tokens must lie in 0..{len(self) - 1}")
        return [self.words[number] for number in numbers]

    def check_fits(self, rows: int, subject: str) -> None:
        """Refuse weights of another vocabulary.

        Parameters
        ----------
        rows
            How many words the weights have embeddings for.
        subject
            The model, for the message ("model lm-micro-softmax").

        Raises
        ------
        UsageError
            If that is not the number of words here.
        """
        if rows != len(self):
            raise UsageError(
                f"{subject}: the weights are for {rows} words but the vocabulary has {len(self)}; "
                "give the vocabulary that the model was trained with"
            )

    def _check(self, name: str) -> None:
        if len(self.counts) != len(self.words):
            raise UsageError(
                f"{name}: every word needs a count, got {len(self.counts)} counts for "
                f"{len(self.words)} words"
            )
        for word in (EOS, UNK):
            if word not in self.index:
                raise UsageError(f"{name}: the word {word} is missing; add it")
        for place, word in enumerate(self.words):
            if word.split() != [word]:
                raise UsageError(f"{name}: words can't be empty or hold spaces, got {word!r}")
            if self.index[word] != place:
                raise UsageError(f"{name}: words must be unique, got {word!r} twice")

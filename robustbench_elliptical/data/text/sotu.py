"""The State of the Union addresses, 1790 to 2021, which ship with the package.

233 addresses; 2,000,768 words without the ends of lines, 29,768 different ones, 16,942 of them seen
at least 3 times. Of the addresses in the order of their year, numbers 0, 10, 20, ... are the part
to choose by, 5, 15, 25, ... the part to report on: a split by year would add a shift of style.
"""

import json
import lzma
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from robustbench_elliptical.data.streams import reading
from robustbench_elliptical.data.text.corpus import SplitName, TextCorpus
from robustbench_elliptical.data.text.document import Document
from robustbench_elliptical.data.text.sources import TEXT, TextSource
from robustbench_elliptical.data.text.tokenization import ASCII_WORDS, split_document

__all__ = ["StateOfTheUnion"]

_EVERY = 10
_PARTS: dict[int, SplitName] = {0: "valid", 5: "test"}
"""The part of an address by its number modulo `_EVERY`; every other one is for training."""


class StateOfTheUnion(TextCorpus):
    """The embedded corpus; an address is one document of one line."""

    def __init__(self) -> None:
        super().__init__("sotu", min_count=3)
        self._path = Path(str(files("robustbench_elliptical.data"))) / "embedded" / "sotu.xz"

    def documents(self, split: SplitName) -> Iterator[Document]:
        """Yield the addresses of a part, by year."""
        with reading(self._path), lzma.open(self._path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream):
                if _PARTS.get(number % _EVERY, "train") == split:
                    address = json.loads(line)
                    name = f"sotu/{address['id']}"
                    yield split_document(name, address["text"].split("\n"), ASCII_WORDS)


TEXT.add(
    "sotu",
    TextSource("sotu", lambda _: StateOfTheUnion(), "State of the Union addresses, 1790-2021"),
)

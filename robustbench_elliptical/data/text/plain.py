"""Any UTF-8 text in a file.

The whole file is one document: a blank line is no boundary that a model could tell from any other,
and pieces cut there would be shorter than a model's window.
"""

from collections.abc import Iterator
from pathlib import Path

from robustbench_elliptical.data.streams import existing
from robustbench_elliptical.data.text.corpus import SplitName, TextCorpus
from robustbench_elliptical.data.text.document import Document
from robustbench_elliptical.data.text.files import read_lines
from robustbench_elliptical.data.text.sources import TEXT, TextSource
from robustbench_elliptical.data.text.tokenization import UNICODE_WORDS, split_document

__all__ = ["PlainText"]


class PlainText(TextCorpus):
    """A text file, which is whatever part it holds.

    Words are split from punctuation; a text that is split already stays as it is.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    UsageError
        If it does not exist.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(f"text:{path}", min_count=3)
        self._path = existing(path, "file", "give a UTF-8 text file")

    def documents(self, split: SplitName) -> Iterator[Document]:
        """Yield the file as one document; every part is the same."""
        del split
        yield split_document(f"text/{self._path.stem}", read_lines(self._path), UNICODE_WORDS)


TEXT.add("text", TextSource("text:FILE", PlainText, "any UTF-8 text, one document"))

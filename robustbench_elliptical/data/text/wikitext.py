"""WikiText-2 or WikiText-103 (Merity et al. 2016, arXiv 1609.07843) from a folder, word level.

The files are taken as they are: words stand between white space, each line ends with `EOS` (blank
lines too), ``<unk>`` is in the text. The vocabulary is every word of the training file, which for
WikiText-103 makes 267,735 with `EOS`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.streams import existing, reading
from robustbench_elliptical.data.text.corpus import SplitName, TextCorpus
from robustbench_elliptical.data.text.document import EOS, Document
from robustbench_elliptical.data.text.files import read_lines
from robustbench_elliptical.data.text.sources import TEXT, TextSource

__all__ = ["WikiText"]

_HINT = "give the folder that holds wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens"


class WikiText(TextCorpus):
    """A folder of three files, ``wiki.test.tokens`` or under an older mirror's name ``test.txt``.

    Parameters
    ----------
    folder
        Where they lie.

    Raises
    ------
    UsageError
        If the folder does not exist.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(f"wikitext:{folder}", min_count=1)
        self._folder = existing(folder, "folder", _HINT)

    def documents(self, split: SplitName) -> Iterator[Document]:
        """Yield the articles: a line ``= Title =`` begins one, ``= = Section = =`` does not."""
        number = 0
        words: list[str] = []
        for line in read_lines(self._file(split)):
            line_words = line.split()
            if _is_title(line_words) and any(word != EOS for word in words):
                yield Document(f"wikitext/{split}/{number:05d}", tuple(words))
                number += 1
                words = []
            words += [*line_words, EOS]
        if words:
            yield Document(f"wikitext/{split}/{number:05d}", tuple(words))

    def _file(self, split: SplitName) -> Path:
        for name in (f"wiki.{split}.tokens", f"wiki.{split}.txt", f"{split}.txt"):
            path = self._folder / name
            with reading(path):
                if path.is_file():
                    return path
        raw = f"wiki.{split}.raw"
        if (self._folder / raw).is_file():
            raise UsageError(
                f"text {self.name}: {raw} is the character-level release, whose words are not "
                f"split from punctuation; {_HINT}"
            )
        raise UsageError(
            f"text {self.name}: wiki.{split}.tokens (or {split}.txt) is missing from that folder; "
            f"{_HINT}"
        )


def _is_title(words: Sequence[str]) -> bool:
    return len(words) > 2 and words[0] == words[-1] == "=" and "=" not in (words[1], words[-2])


TEXT.add(
    "wikitext",
    TextSource("wikitext:DIR", WikiText, "WikiText-2 or WikiText-103, word level, from a folder"),
)

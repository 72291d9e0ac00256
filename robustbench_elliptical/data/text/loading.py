"""Open a corpus by what the user wrote."""

from pathlib import Path

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.data.text.corpus import SplitName, TextCorpus, TextSplit
from robustbench_elliptical.data.text.sources import TEXT
from robustbench_elliptical.data.text.vocabulary import Vocabulary

__all__ = ["load_corpus", "load_text"]


def load_corpus(spec: str) -> TextCorpus:
    """Open the corpus `spec`.

    Parameters
    ----------
    spec
        ``sotu``, ``wikitext:DIR``, ``text:FILE`` or another registered name; ``~`` is the home
        folder.

    Raises
    ------
    UnknownNameError
        If no corpus has the name.
    UsageError
        If the corpus can't be opened.
    """
    name, colon, place = (part.strip() for part in spec.partition(":"))
    if name not in TEXT:
        ways = ", ".join(sorted(TEXT[known].usage for known in TEXT))
        raise UnknownNameError("text", name, TEXT, f"Write one of {ways}.")
    source = TEXT[name]
    if bool(place) != (":" in source.usage) or (colon and not place):
        raise UsageError(f"text must be written {source.usage}, got {spec!r}")
    try:
        path = Path(place).expanduser()
    except RuntimeError:
        raise UsageError(f"no home folder is known for {place!r}; write the whole path") from None
    return source.load(path)


def load_text(
    spec: str, split: SplitName = "test", *, vocabulary: Vocabulary | None = None
) -> TextSplit:
    """Open one part of the corpus `spec`.

    Parameters
    ----------
    spec
        See `load_corpus`.
    split
        Which part, of a corpus that has parts; a text file is whatever part it holds.
    vocabulary
        What the model to be evaluated knows.

    Raises
    ------
    UnknownNameError
        If no corpus has the name.
    UsageError
        If the part can't be opened, has no words, or the vocabulary knows none of them.
    """
    part = load_corpus(spec).split(split)
    part.check(vocabulary)
    return part

"""Split lines into words, and remember where no space stood."""

import re
from collections.abc import Iterable

from robustbench_elliptical.data.text.document import EOS, Document

__all__ = ["ASCII_WORDS", "UNICODE_WORDS", "split_document"]

ASCII_WORDS = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d+|\S")
"""Runs of ASCII letters, also with one ending such as ``'s`` or ``'t``; runs of digits; any other
character by itself."""

UNICODE_WORDS = re.compile(r"<unk>|@[-,.]@|[^\W\d_]+(?:'[^\W\d_]+)?|\d+|\S")
"""The same for letters of any script; WikiText's marks stay whole."""


def split_document(name: str, lines: Iterable[str], word: re.Pattern[str]) -> Document:
    """Return the document of these lines, an `EOS` after each.

    Parameters
    ----------
    name
        Its id.
    lines
        Without their line feeds.
    word
        Matches one word; it must leave out nothing but white space.
    """
    words: list[str] = []
    glued = bytearray()
    for line in lines:
        end = -1
        for match in word.finditer(line):
            words.append(match.group())
            glued.append(match.start() == end)
            end = match.end()
        words.append(EOS)
        glued.append(1)
    return Document(name, tuple(words), bytes(glued))

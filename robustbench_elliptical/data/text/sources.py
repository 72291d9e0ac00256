"""The registry of corpora: what ``NAME`` or ``NAME:PLACE`` on the command line opens."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from robustbench_elliptical.core.registry import Registry
from robustbench_elliptical.data.text.corpus import SplitName, TextCorpus

__all__ = ["TEXT", "SplitName", "TextSource"]


@dataclass(frozen=True)
class TextSource:
    """A kind of corpus."""

    usage: str
    """The way to write it: ``text:FILE``, or a bare name for a corpus that needs no place."""
    load: Callable[[Path], TextCorpus]
    """Opens the corpus at a place, ``~`` expanded; the place of a bare name is ``.``."""
    summary: str
    """One line for listings."""


TEXT: Registry[TextSource] = Registry("text")
"""Every corpus by name."""

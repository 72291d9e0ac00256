"""Which models are compared: every two, or every one with the one that was named."""

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol, TypeVar

from robustbench_elliptical.core.errors import UnknownNameError

__all__ = ["check_against", "pairs"]


class Labelled(Protocol):
    """A model of a block."""

    label: str


Entry = TypeVar("Entry", bound=Labelled)


def pairs(entries: Sequence[Entry], against: str | None) -> list[tuple[Entry, Entry]]:
    """Return the pairs to compare: each with the model named, if it is there, else every two."""
    named = [entry for entry in entries if entry.label == against]
    if not named:
        return list(combinations(entries, 2))
    return [(entry, named[0]) for entry in entries if entry is not named[0]]


def check_against(against: str | None, labels: Sequence[str]) -> None:
    """Refuse the name of a model that no run has.

    Raises
    ------
    UnknownNameError
        With the names that there are.
    """
    if against is not None and against not in labels:
        raise UnknownNameError("model of the runs", against, labels)

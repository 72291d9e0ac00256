"""The one tree of errors that a user can cause, and nothing else.

The command line prints the message of a `UsageError` as a single sentence and leaves with exit
code 2; every other exception is a defect of this project and keeps its traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UnknownNameError", "UsageError"]


class UsageError(ValueError):
    """Bad input: the message names the argument, what is required, what was given, a way out."""


class UnknownNameError(UsageError):
    """A name that no registry entry has; the message suggests its neighbours.

    Parameters
    ----------
    kind
        What was looked up, in the words of the command line ("model", "attack").
    name
        The name as it was given.
    known
        Every name that would have been accepted.
    hint
        A further way out, as a full sentence.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            way_out = f"did you mean {' or '.join(repr(each) for each in near)}?"
        else:
            way_out = f"known: {', '.join(names) or 'none'}."
        super().__init__(f"unknown {kind} {name!r}: {way_out}{' ' + hint if hint else ''}")
        self.name = name

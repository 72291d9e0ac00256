"""Parse what is written on the command line: ``pgd:steps=40,restarts=5`` and ``8/255``."""

import math
from collections.abc import Collection
from typing import NamedTuple

from robustbench_elliptical.core.errors import UsageError

__all__ = [
    "Spec",
    "format_epsilon",
    "parse_epsilon",
    "parse_number",
    "parse_settings",
    "parse_spec",
]


_MOST_LEVELS = 128
"""Above it a fraction of 255 reads worse than a decimal."""


class Spec(NamedTuple):
    """A name and its settings as text, before anything is looked up."""

    name: str
    settings: dict[str, str]


def parse_spec(text: str, what: str) -> Spec:
    """Parse ``NAME`` or ``NAME:key=value,key=value``.

    Parameters
    ----------
    text
        What the user wrote.
    what
        What it names ("attack"), for the message.

    Raises
    ------
    UsageError
        If the name is empty or the settings are not pairs.
    """
    name, colon, rest = text.partition(":")
    if not name.strip():
        raise UsageError(f"{what} must be NAME or NAME:key=value,..., got {text!r}")
    return Spec(name.strip(), parse_settings(rest, f"{what} {name.strip()}") if colon else {})


def parse_settings(text: str, subject: str, paths: Collection[str] = ()) -> dict[str, str]:
    """Parse ``key=value,key=value``.

    Parameters
    ----------
    text
        What the user wrote.
    subject
        What it is about ("model deit"), for the message.
    paths
        Keys whose values are paths and may hold commas, up to the next ``key=``.

    Raises
    ------
    UsageError
        If a part is no pair, or a key is given twice.
    """
    settings: dict[str, str] = {}
    key = ""
    for pair in text.split(","):
        if key in paths and "=" not in pair:
            settings[key] += f",{pair}"
            continue
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            raise UsageError(f"settings of {subject} must be key=value,..., got {pair!r}")
        key = key.replace("-", "_")
        if key in settings:
            raise UsageError(f"setting {key} of {subject} is given twice")
        settings[key] = value
    return settings


def parse_number(text: str) -> float:
    """Return a number written as ``8/255``, ``0.5/255`` or ``0.031``; NaN for anything else."""
    top, slash, bottom = text.partition("/")
    try:
        return float(top) / float(bottom) if slash else float(top)
    except (ValueError, ZeroDivisionError):
        return math.nan


def parse_epsilon(text: str | float) -> float:
    """Return an epsilon written as ``8/255`` or ``0.031``, in [0, 1] pixels.

    Raises
    ------
    UsageError
        If it is not a number, not finite, or negative. Whether it is too large depends on the
        norm: `robustbench_elliptical.attacks` checks that.
    """
    value = parse_number(text) if isinstance(text, str) else float(text)
    if not math.isfinite(value):
        raise UsageError(f"epsilon must be a number such as 8/255 or 0.031, got {text!r}")
    if value < 0:
        raise UsageError(f"epsilon must be 0 or more, got {text}; it is a distance, write 8/255")
    return value


def format_epsilon(epsilon: float) -> str:
    """Return an epsilon as people write it: ``8/255`` where it is one, else a short decimal."""
    levels = epsilon * 255
    if epsilon == 0 or abs(levels - round(levels, 2)) > 1e-9 or levels > _MOST_LEVELS:
        return f"{epsilon:g}"
    return f"{round(levels, 2):g}/255"

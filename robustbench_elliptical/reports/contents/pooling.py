"""Several training seeds of one model, pooled: seeds and samples are two sources of error."""

import json
import math
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from robustbench_elliptical.reports.blocks import ImageEntry, TextEntry
from robustbench_elliptical.results import ModelRecord

__all__ = ["NOTE", "Estimate", "Family", "estimate", "families", "spread"]

NOTE = (
    "Samples that all seeds share. The 95 % interval is Student's, from the spread between seeds "
    "and the sampling of the data together (Welch-Satterthwaite): seeds are not counted as further "
    "samples, and with few seeds it is wide."
)

Values = npt.NDArray[np.float64]
Entry = TypeVar("Entry", ImageEntry, TextEntry)


class Family(NamedTuple, Generic[Entry]):
    """Models that differ in their seed only."""

    label: str
    entries: list[Entry]


class Variance(NamedTuple):
    """A part of the variance of an estimate, with its degrees of freedom."""

    value: float
    freedom: int


class Estimate(NamedTuple):
    """A mean over seeds, or a difference of two."""

    low: float
    high: float
    p_value: float
    """Two-sided, of the hypothesis that it is 0."""


def families(entries: Sequence[Entry]) -> list[Family[Entry]]:
    """Return the families with several seeds; two models with one seed are no family."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(_kind(entry.record), []).append(entry)
    found: list[Family[Entry]] = []
    for members in groups.values():
        seeds = [entry.record.seed for entry in members]
        if len(members) > 1 and None not in seeds and len(set(seeds)) == len(seeds):
            record = members[0].record
            overrides = record.description.get("attention_overrides") or {}
            extra = "".join(f",{key}={value}" for key, value in overrides.items())
            found.append(Family(f"{record.family}{extra}", members))
    return found


def _kind(record: ModelRecord) -> str:
    names = ("attention", "attention_settings", "architecture", "weights", "gradient_mode")
    return json.dumps(
        [record.family, *(record.description.get(name) for name in names)],
        sort_keys=True,
        default=str,
    )


def spread(values: Values) -> Variance:
    """Return the variance of the mean of some values drawn independently."""
    return Variance(float(values.var(ddof=1)) / len(values), len(values) - 1)


def estimate(centre: float, parts: Sequence[Variance]) -> Estimate:
    """Return the interval and test of an estimate whose variance has several parts.

    The spread between seeds holds some sampling error too, so the interval is wide rather than
    narrow.
    """
    variance = sum(part.value for part in parts)
    if variance == 0:
        return Estimate(centre, centre, 1.0 if centre == 0 else 0.0)
    freedom = variance**2 / sum(part.value**2 / part.freedom for part in parts)
    error = math.sqrt(variance)
    half = float(student.ppf(0.975, freedom)) * error
    p_value = float(2 * student.sf(abs(centre) / error, freedom))
    return Estimate(centre - half, centre + half, p_value)

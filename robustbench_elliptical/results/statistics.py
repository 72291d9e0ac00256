"""Uncertainty of an accuracy."""

from typing import NamedTuple

from scipy.stats import binomtest

__all__ = ["Interval", "wilson_interval"]


class Interval(NamedTuple):
    """Both ends of a confidence interval."""

    low: float
    high: float


def wilson_interval(successes: int, samples: int, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of a proportion (Wilson 1927), without continuity term.

    Raises
    ------
    ValueError
        If there are no samples or more successes than samples.
    """
    interval = binomtest(successes, samples).proportion_ci(confidence, method="wilson")
    return Interval(float(interval.low), float(interval.high))

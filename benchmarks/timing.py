"""Ratios of two computations, measured in turns so that noise hits both."""

import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Budget", "Ratio", "compare", "seconds"]

Computation = Callable[[], object]

SHORTEST = 0.05
"""Seconds that one timing lasts at least; a faster computation is repeated within it."""
LONG = 1.0
"""Seconds from which the first call says well enough how long a computation takes."""


class Budget(NamedTuple):
    """How long one comparison may take."""

    seconds: float
    least: int = 4
    """Repetitions at least, whatever they take."""
    most: int = 101
    """Repetitions at most."""


class Ratio(NamedTuple):
    """The time of one computation over that of another, over interleaved repetitions."""

    low: float
    """First quartile."""
    median: float
    high: float
    """Third quartile."""
    repetitions: int


def compare(ours: Computation, other: Computation, budget: Budget) -> Ratio:
    """Time both in turns (A B, B A, A B, ...) and return the ratio within each turn, summarised."""
    first, second = _warm_seconds(ours), _warm_seconds(other)
    one, two = _Timed(ours, _repetitions(first)), _Timed(other, _repetitions(second))
    wanted = int(budget.seconds / (one.repetitions * first + two.repetitions * second))
    turns = min(max(wanted, budget.least), budget.most)
    ratios = [_turn(one, two, swapped=turn % 2 == 1) for turn in range(turns)]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(low, median, high, turns)


class _Timed(NamedTuple):
    """A computation and how often a timing repeats it."""

    computation: Computation
    repetitions: int

    def seconds(self) -> float:
        """Return how long one run takes."""
        return seconds(self.computation, self.repetitions) / self.repetitions


def _repetitions(once: float) -> int:
    """Return how often a computation of that many seconds is repeated within a timing."""
    return max(1, math.ceil(SHORTEST / once))


def _turn(ours: _Timed, other: _Timed, *, swapped: bool) -> float:
    if swapped:
        other_time = other.seconds()
        return ours.seconds() / other_time
    ours_time = ours.seconds()
    return ours_time / other.seconds()


def _warm_seconds(computation: Computation) -> float:
    """Run once to warm up and return about how long it takes."""
    first = seconds(computation, 1)
    return first if first > LONG else seconds(computation, 1)


def seconds(computation: Computation, repetitions: int) -> float:
    """Return how long some runs take, in seconds."""
    start = time.perf_counter()
    for _ in range(repetitions):
        computation()
    return time.perf_counter() - start

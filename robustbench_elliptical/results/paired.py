"""Compare two models on the same samples: exact test, difference with interval, correction."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

__all__ = ["Difference", "McNemar", "holm", "mcnemar", "paired_difference"]

Right = npt.NDArray[np.bool_]
"""One entry a sample: whether the model was right."""


class McNemar(NamedTuple):
    """On how many samples exactly one of two models was right."""

    only_a: int
    """Samples on which only the first was right."""
    only_b: int
    """Samples on which only the second was right."""
    p_value: float
    """Two-sided, of the hypothesis that both are as often right."""


class Difference(NamedTuple):
    """How much more often the first model was right than the second."""

    difference: float
    """Accuracy of the first minus that of the second."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


def mcnemar(a_right: Right, b_right: Right) -> McNemar:
    """Test whether two models are right equally often (McNemar 1947), exactly by the binomial.

    Parameters
    ----------
    a_right, b_right
        Whether each model was right, the same samples in the same order, shape (samples,).

    Raises
    ------
    ValueError
        If the shapes differ or there are no samples.
    """
    only_a, only_b = _discordant(a_right, b_right)
    if only_a + only_b == 0:
        return McNemar(0, 0, 1.0)
    return McNemar(only_a, only_b, float(binomtest(only_a, only_a + only_b).pvalue))


def paired_difference(a_right: Right, b_right: Right, confidence: float = 0.95) -> Difference:
    """Return the difference of two accuracies on the same samples, with its score interval.

    The interval is Tango's (1998): it inverts the score test, so it agrees with the asymptotic
    McNemar test and stays within [-1, 1] where samples are few or all alike.

    Parameters
    ----------
    a_right, b_right
        See `mcnemar`.
    confidence
        Coverage, in (0, 1).

    Raises
    ------
    ValueError
        If the shapes differ, there are no samples or the coverage is not in (0, 1).
    """
    only_a, only_b = _discordant(a_right, b_right)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    samples = len(a_right)
    limit = float(norm.ppf(0.5 + confidence / 2))
    high = _upper_end(only_a, only_b, samples, limit)
    low = -_upper_end(only_b, only_a, samples, limit)
    return Difference((only_a - only_b) / samples, low, high)


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p-values corrected for their number (Holm 1979), in the order given.

    Raises
    ------
    ValueError
        If a value is not in [0, 1] or they are not in one row.
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p-values must be one row of numbers in [0, 1]")
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def _discordant(a_right: Right, b_right: Right) -> tuple[int, int]:
    """Return on how many samples only the first, and only the second model was right."""
    first, second = np.asarray(a_right, dtype=bool), np.asarray(b_right, dtype=bool)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise ValueError(
            "paired samples must be two rows of the same length, at least one sample, got shapes "
            f"{first.shape} and {second.shape}"
        )
    return int((first & ~second).sum()), int((~first & second).sum())


def _upper_end(only_a: int, only_b: int, samples: int, limit: float) -> float:
    """Return the largest difference that the score test doesn't refuse."""
    observed = (only_a - only_b) / samples

    def excess(difference: float) -> float:
        return _score(only_a, only_b, samples, difference) + limit

    if observed >= 1 or excess(1.0) >= 0:
        return 1.0
    return float(brentq(excess, observed, 1.0, xtol=1e-12))


def _score(only_a: int, only_b: int, samples: int, difference: float) -> float:
    """Return the standardised distance of the observed difference from a supposed one."""
    linear = (2 * samples - only_a + only_b) * difference - only_a - only_b
    constant = -only_b * difference * (1 - difference)
    root = math.sqrt(max(linear * linear - 8 * samples * constant, 0.0))
    share_b = (root - linear) / (4 * samples)
    variance = samples * (2 * share_b + difference * (1 - difference))
    distance = only_a - only_b - samples * difference
    if variance <= 1e-15:
        return 0.0 if abs(distance) < 1e-12 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)

"""Perplexity with its uncertainty: documents are what is drawn again, not words."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import DegenerateDataWarning, bootstrap

from robustbench_elliptical.results.statistics import Interval

__all__ = ["Ratio", "perplexity", "perplexity_interval", "perplexity_ratio"]

Sums = npt.NDArray[np.float64]

RESAMPLES = 2000
"""Resamples of the documents."""


class Ratio(NamedTuple):
    """How many times higher one perplexity is than another, on the same documents."""

    ratio: float
    """Of the first to the second."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    p_value: float
    """Two-sided, of the hypothesis that both are equal."""


def perplexity(loss: float, targets: int) -> float:
    """Return exp(loss / targets); infinite where that overflows.

    Parameters
    ----------
    loss
        Sum of negative log-likelihoods, in nats.
    targets
        How many they are.

    Raises
    ------
    ValueError
        If there are no targets.
    """
    if targets < 1:
        raise ValueError("a perplexity needs at least one target")
    try:
        return math.exp(loss / targets)
    except OverflowError:
        return math.inf


def perplexity_interval(
    losses: Sums,
    targets: Sums,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> Interval | None:
    """Return the bootstrap interval of exp(sum of losses / sum of targets) over documents.

    Bias-corrected and accelerated (Efron 1987), by the percentiles where that is undefined (every
    document alike).

    Parameters
    ----------
    losses
        Sum of the losses of each document, in nats, shape (documents,).
    targets
        Number of targets of each document, shape (documents,).
    seed
        Of the resamples.
    resamples
        How many.
    confidence
        Coverage.

    Returns
    -------
    Interval or None
        None for fewer than two documents.
    """
    if len(losses) < 2:
        return None
    found = _interval((losses, targets), _log_perplexity, seed, resamples, confidence)
    return Interval(_exp(found[0]), _exp(found[1]))


def perplexity_ratio(
    losses_a: Sums,
    targets_a: Sums,
    losses_b: Sums,
    targets_b: Sums,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> Ratio | None:
    """Compare two perplexities, drawing each document for both at once.

    The interval is that of `perplexity_interval`. The p-value is twice the smaller share of
    resamples on either side of 1, each counted with one more resample (Davison & Hinkley 1997,
    section 4.4), so it is never below 2 / (resamples + 1). A resample without a ratio (losses that
    are not finite) counts on both sides.

    Parameters
    ----------
    losses_a, targets_a
        Of the first model, one entry a document; see `perplexity_interval`.
    losses_b, targets_b
        Of the second model, the same documents in the same order.
    seed, resamples, confidence
        See `perplexity_interval`. Exchanging the models inverts the ratio and changes no p-value.

    Returns
    -------
    Ratio or None
        None for fewer than two documents.
    """
    if len(losses_a) < 2:
        return None
    data = (losses_a, targets_a, losses_b, targets_b)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(_log_ratio(*data))
    low, high, draws = _interval(data, _log_ratio, seed, resamples, confidence)
    below, above = int((~(draws > 0)).sum()), int((~(draws < 0)).sum())
    p_value = min(1.0, 2 * (min(below, above) + 1) / (len(draws) + 1))
    return Ratio(_exp(ratio), _exp(low), _exp(high), p_value)


def _log_perplexity(losses: Sums, targets: Sums, axis: int = -1) -> Sums:
    total: Sums = losses.sum(axis=axis) / targets.sum(axis=axis)
    return total


def _log_ratio(
    losses_a: Sums, targets_a: Sums, losses_b: Sums, targets_b: Sums, axis: int = -1
) -> Sums:
    return _log_perplexity(losses_a, targets_a, axis) - _log_perplexity(losses_b, targets_b, axis)


def _interval(
    data: tuple[Sums, ...], statistic: object, seed: int, resamples: int, confidence: float
) -> tuple[float, float, Sums]:
    """Return both ends and the resampled statistics."""
    options = {
        "n_resamples": resamples,
        "paired": True,
        "vectorized": True,
        "axis": -1,
        "confidence_level": confidence,
    }
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # answered by the percentiles
        found = bootstrap(data, statistic, method="BCa", rng=np.random.default_rng(seed), **options)
        if not np.isfinite(found.confidence_interval).all():
            found = bootstrap(
                data, statistic, method="percentile", rng=np.random.default_rng(seed), **options
            )
    interval = found.confidence_interval
    return float(interval.low), float(interval.high), found.bootstrap_distribution


def _exp(value: float) -> float:
    return perplexity(value, 1)

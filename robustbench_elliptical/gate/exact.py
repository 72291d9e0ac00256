"""One-sided exact test of a paired difference against a margin."""

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincinv, gammaln, xlog1py, xlogy

__all__ = ["exceeds", "score"]

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

SET_ASIDE = 1e-6
"""Probability that the nuisance parameter lies outside the values tried; part of every p-value."""
GRID = 64
"""Values of the nuisance parameter that are tried, and as many again around the worst."""
_SPREAD = 8.0
"""Standard deviations of a count beyond which its probability is neglected (below 1e-14)."""


def score(
    first: npt.ArrayLike, second: npt.ArrayLike, samples: int, margin: float
) -> npt.NDArray[np.float64]:
    """Return Tango's (1998) score statistic of the hypothesis that a difference equals a margin.

    The variance is that of the maximum likelihood estimate under the hypothesis, in closed form.

    Parameters
    ----------
    first, second
        Samples with the first property only, and with the second only.
    samples
        All of them.
    margin
        Supposed difference of the two shares, in (-1, 1).

    Returns
    -------
    array
        Standardised distance of the observed difference from the margin, positive above it.
    """
    only_first, only_second = np.broadcast_arrays(
        np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    )
    linear = (2 * samples - only_first + only_second) * margin - only_first - only_second
    constant = -only_second * margin * (1 - margin)
    root = np.sqrt(np.maximum(linear * linear - 8 * samples * constant, 0.0))
    share = (root - linear) / (4 * samples)
    variance = samples * (2 * share + margin * (1 - margin))
    distance = only_first - only_second - samples * margin
    with np.errstate(divide="ignore", invalid="ignore"):
        found = distance / np.sqrt(np.maximum(variance, 0.0))
    degenerate = np.where(np.abs(distance) < 1e-9, 0.0, np.copysign(np.inf, distance))
    return np.where(variance <= 1e-12, degenerate, found)


def exceeds(first: int, second: int, samples: int, margin: float) -> float:
    """Test whether the share with the first property exceeds that with the second by a margin.

    Exact and unconditional: the p-value is the largest probability, under any distribution in the
    hypothesis, of a score statistic at least as large as the observed one (Hsueh, Liu & Chen 2001;
    Sidik 2003). It is sought where the nuisance parameter, the share with the second property,
    plausibly lies (Berger & Boos 1994), and the probability that it lies elsewhere is added. So the
    level holds for any number of samples and however few are discordant.

    Parameters
    ----------
    first, second, samples, margin
        As for `score`. The hypothesis tested: P(first only) - P(second only) <= margin.

    Returns
    -------
    float
        One-sided p-value, at least `SET_ASIDE`.

    Raises
    ------
    ValueError
        If the counts don't fit the number of samples, or the margin is not in (-1, 1).
    """
    if min(first, second) < 0 or first + second > samples or samples < 1:
        raise ValueError(f"counts {first} and {second} do not fit {samples} samples")
    if not -1 < margin < 1:
        raise ValueError(f"margin must lie between -1 and 1, got {margin}")
    shares = _nuisance(second, samples, margin)
    if not len(shares):
        return SET_ASIDE
    counts = _plausible_counts(shares, samples)
    observed = float(score(first, second, samples, margin))
    least = _boundary(counts, samples, margin, observed)
    probabilities = _tail(counts, least, shares, samples, margin)
    worst = int(probabilities.argmax())
    near = _between(shares[max(0, worst - 1)], shares[min(GRID - 1, worst + 1)])
    refined = _tail(counts, least, near, samples, margin)
    largest = max(probabilities[worst], refined.max())
    return float(min(1.0, largest + SET_ASIDE))


def _nuisance(second: int, samples: int, margin: float) -> Numbers:
    """Return the shares to try: those in the Clopper-Pearson interval that the margin allows."""
    half = SET_ASIDE / 2
    low = betaincinv(second, samples - second + 1, half) if second else 0.0
    high = betaincinv(second + 1, samples - second, 1 - half) if second < samples else 1.0
    low = max(float(low), -margin)
    if low > high:
        return np.empty(0)
    return _between(low, min(float(high), 1.0))


def _between(low: float, high: float) -> Numbers:
    """Return shares that a count tells apart equally well."""
    ends = np.arcsin(np.sqrt([low, high]))
    return np.asarray(np.sin(np.linspace(ends[0], ends[1], GRID)) ** 2, dtype=np.float64)


def _plausible_counts(shares: Numbers, samples: int) -> Counts:
    low, high = float(shares[0]), float(shares[-1])
    least = samples * low - _SPREAD * np.sqrt(samples * low * (1 - low)) - _SPREAD
    most = samples * high + _SPREAD * np.sqrt(samples * high * (1 - high)) + _SPREAD**2
    return np.arange(max(0, int(least)), min(samples, int(most)) + 1)


def _boundary(counts: Counts, samples: int, margin: float, observed: float) -> Counts:
    """Return for each count of the second the least count of the first in the tail.

    The statistic rises with the first count, so bisection finds it.
    """
    low = np.zeros_like(counts)
    high = samples - counts + 1
    threshold = observed - 1e-9 * max(1.0, abs(observed)) if np.isfinite(observed) else observed
    while (low < high).any():
        middle = (low + high) // 2
        inside = score(middle, counts, samples, margin) >= threshold
        high = np.where(inside & (low < high), middle, high)
        low = np.where(~inside & (low < high), middle + 1, low)
    return low


def _tail(counts: Counts, least: Counts, shares: Numbers, samples: int, margin: float) -> Numbers:
    """Return the probability of the tail for each share, the difference being the margin."""
    share = shares[:, None]
    rest = np.maximum(1 - share, 1e-300)
    given = np.clip((share + margin) / rest, 0.0, 1.0)
    left = samples - counts
    possible = np.broadcast_to((least >= 1) & (least <= left), (len(shares), len(counts)))
    above = np.where(least == 0, 1.0, 0.0) * np.ones_like(given)
    a, b = np.maximum(least, 1), np.maximum(left - least + 1, 1)
    above = np.where(possible, betainc(a, b, given), above)
    total: Numbers = (_binomial(counts, share, samples) * above).sum(axis=1)
    return total


def _binomial(counts: Counts, share: Numbers, samples: int) -> Numbers:
    """Return the probability of each count, for shares as a column."""
    rest = samples - counts
    ways = gammaln(samples + 1) - gammaln(counts + 1) - gammaln(rest + 1)
    return np.asarray(np.exp(ways + xlogy(counts, share) + xlog1py(rest, -share)))

"""One-sided test of a ratio of two perplexities on the same documents."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_DOCUMENTS", "RatioTest", "ratio_test"]

Sums = npt.NDArray[np.float64]

LEAST_DOCUMENTS = 16
"""Fewer say too little about their own spread for a bootstrap to hold its level."""
RESAMPLES = 9999
"""Resamples of the documents: the smallest p-value is 1 / (resamples + 1)."""
_CHUNK = 2_000_000
"""Numbers drawn at once."""


class RatioTest(NamedTuple):
    """How a perplexity changed, and what speaks against which hypothesis."""

    log_ratio: float
    """Logarithm of the new perplexity over the old one."""
    deviation: float
    """Standard deviation of one document's share in it."""
    skewness: float
    """Skewness of these shares; 0 where all are alike."""
    above: float
    """p-value of the hypothesis that the ratio is at most the allowed one."""
    below: float
    """p-value of the hypothesis that it is at least the allowed one."""
    lower: float
    """p-value of the hypothesis that it is at least 1."""


def ratio_test(
    new: Sums,
    old: Sums,
    targets: Sums,
    allowed: float,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> RatioTest:
    """Compare a ratio of perplexities with the allowed one, drawing documents for both at once.

    Studentised bootstrap on the log scale (Efron & Tibshirani 1993, chapter 12; p-values after
    Davison & Hinkley 1997, section 4.4): second-order accurate, so that it holds its level with
    few documents better than percentiles do. The standard error is that of a ratio of two means.

    Parameters
    ----------
    new, old
        Sums of losses of each document, in nats, shape (documents,).
    targets
        Number of targets of each document.
    allowed
        Ratio that is still allowed, above 1.
    seed
        Of the resamples.
    resamples
        How many.

    Returns
    -------
    RatioTest
        With every p-value 1 for fewer than `LEAST_DOCUMENTS` documents.
    """
    differences = new - old
    centre, error = _estimate(differences[None], targets[None])
    log_ratio, standard = float(centre[0]), float(error[0])
    count = len(differences)
    deviation = standard * float(np.sqrt(count))
    if count < LEAST_DOCUMENTS:
        return RatioTest(log_ratio, deviation, 0.0, 1.0, 1.0, 1.0)
    drawn = _studentised(differences, targets, log_ratio, seed, resamples)

    def rising(margin: float) -> float:
        return _share(drawn >= _over(log_ratio - margin, standard))

    def falling(margin: float) -> float:
        return _share(drawn <= _over(log_ratio - margin, standard))

    limit = float(np.log(allowed))
    skewness = _skewness(differences - log_ratio * targets)
    return RatioTest(log_ratio, deviation, skewness, rising(limit), falling(limit), falling(0.0))


def _estimate(differences: Sums, targets: Sums) -> tuple[Sums, Sums]:
    """Return the log ratio and its standard error for each row of documents."""
    count = differences.shape[1]
    total = targets.sum(axis=1)
    centre = differences.sum(axis=1) / total
    residuals = differences - centre[:, None] * targets
    variance = (residuals**2).sum(axis=1) * count / (count - 1) if count > 1 else total * 0
    error: Sums = np.sqrt(variance) / total
    return centre, error


def _skewness(residuals: Sums) -> float:
    scale = float((residuals**2).mean())
    return float((residuals**3).mean()) / scale**1.5 if scale > 1e-18 else 0.0


def _studentised(
    differences: Sums, targets: Sums, log_ratio: float, seed: int, resamples: int
) -> Sums:
    generator = np.random.default_rng(seed)
    count = len(differences)
    rows = max(1, _CHUNK // count)
    found = []
    for start in range(0, resamples, rows):
        drawn = generator.integers(0, count, (min(rows, resamples - start), count))
        centre, error = _estimate(differences[drawn], targets[drawn])
        found.append(_over(centre - log_ratio, error))
    return np.concatenate(found)


def _over(distance: npt.ArrayLike, error: npt.ArrayLike) -> Sums:
    """Return distance / error; infinite where only the error is 0 but for rounding."""
    far, spread = np.asarray(distance, dtype=np.float64), np.asarray(error, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = far / spread
    sure = np.where(np.abs(far) < 1e-12, 0.0, np.copysign(np.inf, far))
    return np.where(spread < 1e-15, sure, found)


def _share(extreme: npt.NDArray[np.bool_]) -> float:
    return (int(extreme.sum()) + 1) / (len(extreme) + 1)

"""How many samples a check needs."""

import math

import numpy as np
from scipy.stats import norm

__all__ = ["documents_needed", "samples_needed"]


def samples_needed(
    lost: int, gained: int, samples: int, max_drop: float, *, level: float, power: float
) -> int | None:
    """Return a number of samples at which the check would be decided with the power asked for.

    It is enough to catch a drop of twice the allowed one, and to pass a checkpoint that loses as
    often as it gains, both with the share of discordant samples that was observed. Where as many
    samples were not enough, the drop lies closer to the allowed one than that, and the number is
    for the observed drop.

    Normal approximation of the score test (Lachin 1981; variance under the hypothesis from Tango
    1998) with a continuity correction of 1 / distance (Casagrande, Pike & Smith 1978).

    Parameters
    ----------
    lost, gained
        Samples that only the baseline, and only the checkpoint answered right.
    samples
        All of them.
    max_drop
        Allowed drop, in (0, 0.5).
    level
        Of one check, one-sided, the correction for several included.
    power
        Probability to decide.

    Returns
    -------
    int or None
        None where the observed drop equals the allowed one: no number would do.
    """
    discordant = (lost + gained + 1) / (samples + 2)
    planted = max(discordant, 2 * max_drop)
    needed = max(
        _needed((planted / 2 + max_drop, planted / 2 - max_drop), max_drop, level, power),
        _needed((discordant / 2, discordant / 2), max_drop, level, power),
    )
    if needed > samples:
        return needed
    shares = (lost / samples, gained / samples)
    if abs(lost - gained - samples * max_drop) < 1e-9 * samples:
        return None
    return max(_needed(shares, max_drop, level, power), samples + 1)


def documents_needed(
    spread: tuple[float, float],
    log_ratio: float,
    log_allowed: float,
    documents: int,
    least: int,
    *,
    level: float,
    power: float,
) -> int | None:
    """Return a number of documents at which a ratio of perplexities would be decided.

    As `samples_needed`: enough to catch twice the allowed increase and to pass none, or else for
    the observed increase. The normal approximation, with the first term of the Edgeworth expansion
    of a studentised mean (Hall 1992) for the side that skewness makes harder.

    Parameters
    ----------
    spread
        Standard deviation and skewness of one document's share in the log ratio.
    log_ratio, log_allowed
        Logarithms of the observed and of the allowed ratio.
    documents
        How many there are.
    least
        Fewest that the test takes.
    level, power
        As for `samples_needed`.

    Returns
    -------
    int or None
        None where the observed ratio equals the allowed one.
    """
    needed = max(least, _documents(spread, log_allowed, level, power))
    if needed > documents:
        return needed
    distance = abs(log_ratio - log_allowed)
    if distance < 1e-12:
        return None
    return max(_documents(spread, distance, level, power), documents + 1)


def _documents(spread: tuple[float, float], distance: float, level: float, power: float) -> int:
    """Return the n for which sqrt(n) distance / deviation is z + skewness (2 z^2 + 1) / 6 sqrt(n).

    Here z is that of the level, to which that of the power is added.
    """
    deviation, skewness = spread
    quantile = float(norm.isf(level))
    root = (quantile + float(norm.ppf(power))) * deviation / distance
    tilt = abs(skewness) * (2 * quantile**2 + 1) / 6 * deviation / distance
    normal = (root + math.sqrt(root * root + 4 * tilt)) ** 2 / 4
    # The studentised statistic has heavier tails than the normal, the more so where documents are
    # skewed: their standard error wavers with the tails, which grow with the square of skewness.
    return math.ceil(normal * (1 + skewness**2 / 30)) + 2


def _needed(shares: tuple[float, float], margin: float, level: float, power: float) -> int:
    """Return the samples at which true shares (lost, gained) are told from the margin."""
    lost, gained = shares
    distance = abs(lost - gained - margin)
    if lost - gained < margin:
        null = _null_variance(gained, lost, -margin)
        # Without any discordant sample the p-value is (1 - margin) ** samples.
        least = math.log(level) / math.log1p(-margin)
    else:
        null, least = _null_variance(lost, gained, margin), 1.0
    true = lost + gained - (lost - gained) ** 2
    spread = norm.isf(level) * math.sqrt(null) + norm.ppf(power) * math.sqrt(max(true, 0.0))
    return math.ceil(max(float(spread / distance) ** 2 + 1 / distance, least))


def _null_variance(first: float, second: float, margin: float) -> float:
    """Return the variance of one sample that the score test supposes, in the limit of many."""
    linear = (2 - first + second) * margin - first - second
    constant = -second * margin * (1 - margin)
    share = (np.sqrt(max(linear * linear - 8 * constant, 0.0)) - linear) / 4
    return max(float(2 * share + margin * (1 - margin)), 0.0)

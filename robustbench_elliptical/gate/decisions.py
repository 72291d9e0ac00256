"""From counts and losses to verdicts: what every check says, all of them considered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.gate.exact import exceeds
from robustbench_elliptical.gate.power import documents_needed, samples_needed
from robustbench_elliptical.gate.ratio import LEAST_DOCUMENTS, RatioTest, ratio_test
from robustbench_elliptical.results import holm

__all__ = [
    "Counts",
    "Decision",
    "Evidence",
    "Verdict",
    "accuracy_evidence",
    "decide",
    "ratio_evidence",
]

Verdict = Literal["pass", "regressed", "improved", "inconclusive"]


@dataclass(frozen=True)
class Counts:
    """Paired outcomes of one check."""

    lost: int
    gained: int
    samples: int


@dataclass(frozen=True)
class Evidence:
    """What one check found, before the others are considered."""

    above: float
    """p-value of the hypothesis that no more than allowed was lost."""
    below: float
    """p-value of the hypothesis that at least what is allowed was lost."""
    lower: float
    """p-value of the hypothesis that nothing was gained."""
    allowed: float
    """Allowed drop of accuracy, or allowed ratio of perplexities."""
    found: Counts | tuple[RatioTest, int]
    """The counts, or the test of the ratio and the number of documents."""

    def needed(self, level: float, power: float) -> int | None:
        """Return how many samples or documents would decide; see `samples_needed`."""
        if isinstance(self.found, Counts):
            each = self.found
            return samples_needed(
                each.lost, each.gained, each.samples, self.allowed, level=level, power=power
            )
        test, documents = self.found
        return documents_needed(
            (test.deviation, test.skewness),
            test.log_ratio,
            math.log(self.allowed),
            documents,
            LEAST_DOCUMENTS,
            level=level,
            power=power,
        )


@dataclass(frozen=True)
class Decision:
    """The verdict on one check."""

    verdict: Verdict
    above: float
    """p-values as in `Evidence`, corrected for the number of checks."""
    below: float
    lower: float
    needed: int | None = None
    """Samples that would decide an inconclusive check; none where no number would."""


def accuracy_evidence(
    before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_], max_drop: float
) -> Evidence:
    """Test a drop of accuracy.

    Parameters
    ----------
    before, after
        Whether the baseline and the checkpoint were right, the same samples in the same order.
    max_drop
        Allowed drop, in (0, 0.5).
    """
    lost, gained = int((before & ~after).sum()), int((~before & after).sum())
    samples = len(before)
    return Evidence(
        above=exceeds(lost, gained, samples, max_drop),
        below=exceeds(gained, lost, samples, -max_drop),
        lower=exceeds(gained, lost, samples, 0.0),
        allowed=max_drop,
        found=Counts(lost, gained, samples),
    )


def ratio_evidence(
    before: npt.NDArray[np.float64],
    after: npt.NDArray[np.float64],
    targets: npt.NDArray[np.float64],
    max_increase: float,
    seed: int = 0,
) -> Evidence:
    """Test an increase of perplexity.

    Parameters
    ----------
    before, after
        Loss of each document, the same documents in the same order.
    targets
        Their targets.
    max_increase
        Allowed increase, as a share.
    seed
        Of the resamples.
    """
    test = ratio_test(after, before, targets, 1 + max_increase, seed=seed)
    return Evidence(test.above, test.below, test.lower, 1 + max_increase, (test, len(before)))


def decide(evidence: Sequence[Evidence], alpha: float, power: float) -> list[Decision]:
    """Return the verdict on each check, Holm's correction over all of them.

    Each verdict but inconclusive is backed by a one-sided test, and each of the three families of
    tests holds alpha over all checks together: the probability of any false alarm, of any wrong
    pass, and of any wrong improvement.

    Parameters
    ----------
    evidence
        One entry a check.
    alpha
        Family-wise level.
    power
        For the recommended number of samples.
    """
    if not evidence:
        return []
    above = holm([each.above for each in evidence])
    below = holm([each.below for each in evidence])
    lower = holm([each.lower for each in evidence])
    decisions = []
    for index, each in enumerate(evidence):
        values = (float(above[index]), float(below[index]), float(lower[index]))
        verdict = _verdict(*values, alpha)
        needed = each.needed(alpha / len(evidence), power) if verdict == "inconclusive" else None
        decisions.append(Decision(verdict, *values, needed))
    return decisions


def _verdict(above: float, below: float, lower: float, alpha: float) -> Verdict:
    if above <= alpha:
        return "regressed"
    if lower <= alpha:
        return "improved"
    return "pass" if below <= alpha else "inconclusive"

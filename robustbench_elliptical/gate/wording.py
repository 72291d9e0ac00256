"""A decision as a record, with the reason as a sentence."""

import math

from robustbench_elliptical.gate.checks import Check
from robustbench_elliptical.gate.decisions import Counts, Decision
from robustbench_elliptical.gate.report import CheckRecord

__all__ = ["check_record"]


def check_record(check: Check, decision: Decision, *, same: bool) -> CheckRecord:
    """Return what a report says of a check.

    Parameters
    ----------
    check
        The cell and what was found in it.
    decision
        The verdict by the statistics.
    same
        Whether model, weights and outcomes are those of the baseline: then it passes outright.
    """
    verdict = "pass" if same else decision.verdict
    found = check.evidence.found
    counts = found if isinstance(found, Counts) else None
    change = check.before - check.after
    if not isinstance(found, Counts):
        change = math.exp(min(found[0].log_ratio, 700.0))
    needed = decision.needed if verdict == "inconclusive" else None
    return CheckRecord(
        title=check.cell.title,
        attack=check.cell.attack,
        norm=check.cell.norm,
        size=check.cell.size,
        verdict=verdict,
        reason="Same weights, same outcomes." if same else _reason(check, decision),
        samples=check.samples,
        measure="perplexity" if counts is None else "accuracy",
        baseline=check.before,
        checked=check.after,
        change=change,
        allowed=check.evidence.allowed,
        lost=None if counts is None else counts.lost,
        gained=None if counts is None else counts.gained,
        p_regressed=decision.above,
        p_pass=decision.below,
        p_improved=decision.lower,
        needed=needed,
    )


def _reason(check: Check, decision: Decision) -> str:
    limit = check.evidence.allowed
    counted = isinstance(check.evidence.found, Counts)
    allowed = f"{100 * limit:g} pp" if counted else f"{100 * (limit - 1):g} %"
    unit = "samples" if counted else "documents"
    if decision.verdict == "regressed":
        return f"Lost more than {allowed} (p = {decision.above:.2g})."
    if decision.verdict == "improved":
        return f"Better than the baseline (p = {decision.lower:.2g})."
    if decision.verdict == "pass":
        return f"Lost less than {allowed} (p = {decision.below:.2g})."
    if decision.needed is None:
        return f"The loss is as large as the allowed {allowed}: no number of {unit} decides."
    return (
        f"{check.samples} {unit} cannot tell whether more than {allowed} was lost: about "
        f"{decision.needed} would."
    )

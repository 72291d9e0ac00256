"""What the gate says: one record that every output format is made of."""

from typing import Literal

from robustbench_elliptical.gate.cells import TaskName
from robustbench_elliptical.gate.decisions import Verdict
from robustbench_elliptical.gate.rules import Rules
from robustbench_elliptical.results import Finding
from robustbench_elliptical.results.records import Record

__all__ = ["EXIT_CODES", "CheckRecord", "GateReport", "Outcome"]

Outcome = Literal["pass", "regressed", "findings", "inconclusive", "incomplete"]

EXIT_CODES: dict[Outcome, int] = {
    "pass": 0,
    "regressed": 1,
    "findings": 1,
    "inconclusive": 3,
    "incomplete": 3,
}
"""2 is bad input, as everywhere on the command line."""


class CheckRecord(Record):
    """One attack at one epsilon or rate."""

    title: str
    """Attack, norm of a worst case, epsilon or rate, as people write it."""
    attack: str
    """Label of the attack; `clean` or `worst-case`."""
    norm: str | None
    """Norm of a worst case."""
    size: float
    """Epsilon in [0, 1] pixels, or rate."""
    verdict: Verdict
    """What was decided."""
    reason: str
    """Why, as a sentence."""
    samples: int
    """Images or documents."""
    measure: Literal["accuracy", "perplexity"]
    """What the next three are."""
    baseline: float
    """Of the baseline."""
    checked: float
    """Of the checkpoint."""
    change: float
    """Drop of accuracy, or perplexity over that of the baseline."""
    allowed: float
    """Largest allowed change, in the same unit."""
    lost: int | None
    """Samples that only the baseline answered right; none for a perplexity."""
    gained: int | None
    """Samples that only the checkpoint answered right."""
    p_regressed: float
    """One-sided p-value against "no more than allowed was lost", Holm over the checks."""
    p_pass: float
    """Against "at least what is allowed was lost"."""
    p_improved: float
    """Against "nothing was gained"."""
    needed: int | None
    """Samples that would decide an inconclusive check; none if no number would."""


class GateReport(Record):
    """The decision about a checkpoint."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    outcome: Outcome
    """The whole decision, under the rules' `fail_on`."""
    exit_code: int
    """Of the command line."""
    task: TaskName
    """What the model does."""
    model: str
    """Name of the checkpoint's model."""
    weights_sha256: str
    """Hash of its weights."""
    baseline_model: str
    """Name of the model it is held against."""
    baseline_weights_sha256: str
    """Hash of its weights."""
    same_weights: bool
    """Whether both hashes are the same."""
    rules: Rules
    """The rules applied."""
    checks: list[CheckRecord]
    """One an attack and epsilon; none for an incomplete evaluation."""
    findings: list[Finding]
    """Red flags about the checkpoint."""
    notices: list[str]
    """What to know when reading it, as sentences."""

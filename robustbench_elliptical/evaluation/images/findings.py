"""Red flags: why a number should not be believed as it stands. Each rule is one function."""

from collections.abc import Iterator, Sequence

import numpy as np

from robustbench_elliptical.evaluation.capabilities import capability_findings
from robustbench_elliptical.evaluation.images.records import WORST_CASE, SampleTable, Unit
from robustbench_elliptical.evaluation.settings import CLEAN
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.results import AccuracySummary, AttackRecord, Finding, wilson_interval

__all__ = ["find"]

_ORDER = ("error", "warning", "notice")
_SHARE = 0.01
"""Share of the samples from which a contradiction between two attacks counts."""


def find(
    models: Sequence[ImageClassifier],
    attacks: Sequence[AttackRecord],
    data: str,
    table: SampleTable,
    summaries: Sequence[AccuracySummary],
    batch_size: int,
) -> list[Finding]:
    """Apply every rule; most severe findings first. `data` is as the command line names it."""
    findings = [
        *_failed_samples(summaries),
        *_no_stronger_than_noise(attacks, summaries),
        *_black_box_beats_white_box(attacks, table),
        *_claimed_accuracy_differs(models, data, summaries),
        *_gradients_skip_a_statistic(models, attacks, table),
        *capability_findings([each.description for each in models], batch_size),
    ]
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def _failed_samples(summaries: Sequence[AccuracySummary]) -> Iterator[Finding]:
    for each in summaries:
        if each.failed and each.attack != WORST_CASE:
            yield Finding(
                id="failed-samples",
                severity="error",
                model=each.model,
                attack=each.attack,
                epsilon=each.epsilon,
                evidence=f"{each.failed} of {each.samples} samples gave no usable answer.",
                remedy="Read the column reason of samples.csv; failed samples count as not robust.",
            )


def _no_stronger_than_noise(
    attacks: Sequence[AttackRecord], summaries: Sequence[AccuracySummary]
) -> Iterator[Finding]:
    knowledge = {attack.label: attack.knowledge for attack in attacks}
    noise = {
        (each.model, each.norm, each.epsilon): each
        for each in summaries
        if knowledge.get(each.attack) == "none"
    }
    for each in summaries:
        control = noise.get((each.model, each.norm, each.epsilon))
        if control is None or knowledge.get(each.attack, "none") == "none" or each.epsilon == 0:
            continue
        if control.robust and each.robust >= control.robust:
            yield Finding(
                id="no-stronger-than-noise",
                severity="warning",
                model=each.model,
                attack=each.attack,
                epsilon=each.epsilon,
                evidence=f"{each.robust} samples resist it, {control.robust} resist random noise "
                "of the same size.",
                remedy="Raise its steps or samples, or look for masked gradients: run spsa and "
                "pgd:loss=margin.",
            )


def _black_box_beats_white_box(
    attacks: Sequence[AttackRecord], table: SampleTable
) -> Iterator[Finding]:
    knowledge = {attack.label: attack.knowledge for attack in attacks}
    cells: dict[tuple[str, str | None, float], list[Unit]] = {}
    for unit in table.units():
        cells.setdefault((unit.model, unit.norm, unit.epsilon), []).append(unit)
    for (model, _, epsilon), units in cells.items():
        white = [each for each in units if knowledge.get(each.attack) == "white-box"]
        for unit in units:
            if not white or knowledge.get(unit.attack) != "black-box":
                continue
            outcomes = [table.outcomes(each) for each in (unit, *white)]
            shortest = min(map(len, outcomes))
            fooled = np.stack([each[:shortest] == "fooled" for each in outcomes])
            alone = int((fooled[0] & ~fooled[1:].any(axis=0)).sum())
            if alone > _SHARE * shortest:
                yield Finding(
                    id="black-box-beats-white-box",
                    severity="warning",
                    model=model,
                    attack=unit.attack,
                    epsilon=epsilon,
                    evidence=f"{alone} of {shortest} samples fall to {unit.attack} but to no "
                    "attack that sees gradients.",
                    remedy="The gradients may be masked: quote the worst case, and run pgd with "
                    "restarts and, where the model has it, gradient_mode=through.",
                )


def _claimed_accuracy_differs(
    models: Sequence[ImageClassifier], data: str, summaries: Sequence[AccuracySummary]
) -> Iterator[Finding]:
    clean = {each.model: each for each in summaries if each.attack == CLEAN}
    for model in models:
        claim, measured = model.description.claimed_accuracy(data), clean.get(model.name)
        if claim is None or measured is None:
            continue
        low, high = wilson_interval(measured.robust, measured.samples, confidence=0.999)
        if not low <= claim <= high:
            yield Finding(
                id="claimed-accuracy-differs",
                severity="warning",
                model=model.name,
                attack=CLEAN,
                epsilon=None,
                evidence=f"The card claims {claim:.1%} clean accuracy, measured "
                f"{measured.accuracy:.1%} of {measured.samples} (99.9 % interval {low:.1%} to "
                f"{high:.1%}).",
                remedy="Check that data, preprocessing and attention settings are the card's.",
            )


def _gradients_skip_a_statistic(
    models: Sequence[ImageClassifier], attacks: Sequence[AttackRecord], table: SampleTable
) -> Iterator[Finding]:
    ran = {(unit.model, unit.attack) for unit in table.units()}
    labels = [attack.label for attack in attacks if attack.knowledge == "white-box"]
    for model in models:
        white = [label for label in labels if (model.name, label) in ran]
        if white and any(each.skips_gradients for each in model.mechanisms()):
            yield Finding(
                id="gradients-skip-a-statistic",
                severity="notice",
                model=model.name,
                attack=None,
                epsilon=None,
                evidence=f"The gradients that {' and '.join(white)} used skip the model's "
                "attention metric, as published.",
                remedy=f"Evaluate {model.name},gradient_mode=through beside it: an attacker may "
                "use those gradients.",
            )

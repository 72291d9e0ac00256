"""The cells of two frozen models, side by side, with their evidence."""

from dataclasses import dataclass

import numpy as np

from robustbench_elliptical.gate.baseline import FrozenDocuments, FrozenSamples
from robustbench_elliptical.gate.cells import CLEAN, WORST_CASE, Cell
from robustbench_elliptical.gate.decisions import Evidence, accuracy_evidence, ratio_evidence
from robustbench_elliptical.gate.rules import Rules
from robustbench_elliptical.results import (
    AttackRecord,
    ImageClassificationResults,
    LanguageModellingResults,
)
from robustbench_elliptical.results.perplexity import perplexity

__all__ = ["Check", "image_checks", "language_checks"]

_SAME = 1e-6
"""Relative difference of losses that rounding explains."""


@dataclass(frozen=True)
class Check:
    """One cell of both models."""

    cell: Cell
    samples: int
    before: float
    """Accuracy or perplexity of the baseline."""
    after: float
    """Of the checkpoint."""
    equal: bool
    """Whether every sample's outcome is the same."""
    evidence: Evidence


def image_checks(
    before: FrozenSamples, after: FrozenSamples, task: ImageClassificationResults, rules: Rules
) -> list[Check]:
    """Return a check for each attack and epsilon, clean first, worst cases last.

    A noise control asks nothing of the model: it is no attack, checked only if the rules name it,
    and never part of a worst case.
    """
    attacks = {
        each.label: each
        for each in task.attacks
        if each.knowledge != "none" or rules.name((each.label, each.name))
    }
    old, new = _right(before, attacks), _right(after, attacks)
    checks = []
    for cell, right in old.items():
        known = attacks.get(cell.attack)
        names = (cell.attack,) if known is None else (known.label, known.name)
        evidence = accuracy_evidence(right, new[cell], rules.drop(names))
        accuracies = (float(right.mean()), float(new[cell].mean()))
        equal = bool((right == new[cell]).all())
        checks.append(Check(cell, len(right), *accuracies, equal, evidence))
    return checks


def _right(
    frozen: FrozenSamples, attacks: dict[str, AttackRecord]
) -> dict[Cell, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    found = {}
    together: dict[tuple[str, float], list[np.ndarray[tuple[int], np.dtype[np.bool_]]]] = {}
    for unit in frozen.units:
        if unit.attack == CLEAN:
            found[Cell("image-classification", CLEAN, None, 0.0)] = unit.right()
        elif unit.attack in attacks:
            cell = Cell("image-classification", unit.attack, None, unit.epsilon)
            found[cell] = unit.right()
            if attacks[unit.attack].knowledge != "none":
                norm = attacks[unit.attack].norm
                together.setdefault((norm, unit.epsilon), []).append(unit.right())
    for (norm, epsilon), rows in together.items():
        if len(rows) > 1:
            cell = Cell("image-classification", WORST_CASE, norm, epsilon)
            found[cell] = np.logical_and.reduce(rows)
    return found


def language_checks(
    before: FrozenDocuments,
    after: FrozenDocuments,
    task: LanguageModellingResults,
    rules: Rules,
    seed: int,
) -> list[Check]:
    """Return a check for each contamination and rate, clean first; no document has failed."""
    registered = {each.label: each.name for each in task.attacks}
    new = {(unit.attack, unit.rate): unit for unit in after.units}
    checks = []
    for unit in before.units:
        cell = Cell("language-modelling", unit.attack, None, unit.rate)
        names = (unit.attack, registered.get(unit.attack, unit.attack))
        targets = np.array(unit.targets, dtype=np.float64)
        old_losses = np.array(unit.losses, dtype=np.float64)
        new_losses = np.array(new[unit.attack, unit.rate].losses, dtype=np.float64)
        evidence = ratio_evidence(old_losses, new_losses, targets, rules.increase(names), seed)
        total = int(targets.sum())
        checks.append(
            Check(
                cell,
                len(targets),
                perplexity(float(old_losses.sum()), total),
                perplexity(float(new_losses.sum()), total),
                bool(np.allclose(old_losses, new_losses, rtol=_SAME, atol=0)),
                evidence,
            )
        )
    return checks

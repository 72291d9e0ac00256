"""Image classifiers that were evaluated on the same images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports.blocks.outcomes import ABSENT, FAILED, FOOLED, Codes
from robustbench_elliptical.reports.blocks.pictures import StoredPicture
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.results import (
    AttackRecord,
    DataRecord,
    Finding,
    InternalsRecord,
    ModelRecord,
)

__all__ = ["CLEAN", "WORST_CASE", "ImageBlock", "ImageCost", "ImageEntry", "ImageUnit"]

CLEAN: Final = "clean"
WORST_CASE: Final = "worst-case"


class ImageUnit(NamedTuple):
    """An attack at an epsilon, `clean`, or the `worst-case` of a norm and an epsilon."""

    attack: str
    norm: str | None
    epsilon: float

    @property
    def amount(self) -> float:
        """Epsilon."""
        return self.epsilon

    @property
    def size(self) -> str:
        """Epsilon as people write it, with its norm; empty for `clean`."""
        if self.norm is None:
            return ""
        if self.norm == "linf":
            return format_epsilon(self.epsilon)
        return f"{self.norm} {self.epsilon:g}"

    @property
    def title(self) -> str:
        """Return ``pgd 8/255``."""
        return f"{self.attack} {self.size}".strip()


class ImageCost(NamedTuple):
    """What a unit cost, over all its samples."""

    samples: int
    forwards: int
    backwards: int
    seconds: float


@dataclass
class ImageEntry:
    """A model of a block."""

    label: str
    """Its name, with that of the run where another model of the block is called so."""
    record: ModelRecord
    """What it is."""
    data: DataRecord
    """What it was evaluated on."""
    runs: list[Run]
    """Where it was evaluated: several where their attacks were merged."""
    samples: "pd.Index[str]"
    """Ids that the codes are about; those of the block once it is complete."""
    codes: dict[ImageUnit, Codes]
    """Outcomes by unit, the worst case included."""
    costs: dict[ImageUnit, ImageCost]
    """Costs by unit."""
    internals: dict[ImageUnit, InternalsRecord] = field(default_factory=dict)
    """Inside of the model by unit; none where the run didn't look into it."""
    pictures: dict[ImageUnit, list[StoredPicture]] = field(default_factory=dict)
    """Pictures by unit, still in their folders."""

    def add_worst_cases(self, real: Sequence[str]) -> None:
        """Combine the attacks of each norm and epsilon, sample by sample.

        Fooled if any attack fooled it, else failed if any failed; over the samples that all of
        them reached. `real` names the attacks that are no mere control.
        """
        for unit in [each for each in self.codes if each.attack == WORST_CASE]:
            del self.codes[unit]
        for (norm, epsilon), units in self.attacked(real).items():
            if len(units) < 2:
                continue
            stacked = np.stack([self.codes[unit] for unit in units])
            combined: Codes = stacked[0].copy()
            combined[(stacked == FAILED).any(axis=0)] = FAILED
            combined[(stacked == FOOLED).any(axis=0)] = FOOLED
            combined[(stacked == ABSENT).any(axis=0)] = ABSENT
            if (combined == ABSENT).all():
                continue
            costs = [self.costs[unit] for unit in units]
            worst = ImageUnit(WORST_CASE, norm, epsilon)
            self.codes[worst] = combined
            self.costs[worst] = ImageCost(
                int((combined != ABSENT).sum()),
                sum(each.forwards for each in costs),
                sum(each.backwards for each in costs),
                sum(each.seconds for each in costs),
            )

    def attacked(self, real: Sequence[str]) -> dict[tuple[str, float], list[ImageUnit]]:
        """Return the attacks that are no control, by norm and epsilon."""
        found: dict[tuple[str, float], list[ImageUnit]] = {}
        for unit in self.codes:
            if unit.norm is not None and unit.attack in real:
                found.setdefault((unit.norm, unit.epsilon), []).append(unit)
        return found


@dataclass
class ImageBlock:
    """Models on the same images, every outcome in the same order of samples."""

    name: str
    """Name of the data."""
    samples: "pd.Index[str]"
    """Ids, in order of first appearance."""
    entries: list[ImageEntry]
    """The models, in the order given."""
    attacks: Mapping[str, AttackRecord]
    """By label, in the order given."""
    findings: list[tuple[Run, ImageEntry | None, Finding]]
    """Red flags with the run that raised them and the model they are about."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know before the numbers: interruptions, merged runs."""

    @property
    def real(self) -> list[str]:
        """Labels of the attacks that ask something of the model."""
        return [label for label, attack in self.attacks.items() if attack.knowledge != "none"]

    def units(self) -> list[ImageUnit]:
        """Return every unit: clean, then by norm and epsilon the attacks, controls first."""
        found = dict.fromkeys(unit for entry in self.entries for unit in entry.codes)
        order = [CLEAN, *_controls(self.attacks), *self.real, WORST_CASE]
        return sorted(
            found, key=lambda unit: (unit.norm or "", unit.epsilon, order.index(unit.attack))
        )

    def sizes(self) -> list[tuple[str, float]]:
        """Return every norm with each of its epsilons."""
        return list(dict.fromkeys((unit.norm, unit.epsilon) for unit in self.units() if unit.norm))

    def is_control(self, unit: ImageUnit) -> bool:
        """Whether a unit is random noise, not an attack."""
        return unit.attack in _controls(self.attacks)

    def comparable(self, unit: ImageUnit, first: ImageEntry, second: ImageEntry) -> bool:
        """Whether two models met the same: a worst case must be that of the same attacks."""
        if unit not in first.codes or unit not in second.codes:
            return False
        if unit.attack != WORST_CASE or unit.norm is None:
            return True
        size = (unit.norm, unit.epsilon)
        sets = [
            {each.attack for each in entry.attacked(self.real)[size]} for entry in (first, second)
        ]
        return sets[0] == sets[1]


def _controls(attacks: Mapping[str, AttackRecord]) -> list[str]:
    return [label for label, attack in attacks.items() if attack.knowledge == "none"]

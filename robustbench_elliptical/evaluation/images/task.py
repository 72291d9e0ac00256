"""Evaluate image classifiers: load the data, attack batch by batch, summarise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageBatch, ImageData, load_data, select
from robustbench_elliptical.evaluation.images.engine import evaluate_batch
from robustbench_elliptical.evaluation.images.findings import find
from robustbench_elliptical.evaluation.images.internals import Witness
from robustbench_elliptical.evaluation.images.plan import PlannedAttack, plan_attacks
from robustbench_elliptical.evaluation.images.records import (
    WORST_CASE,
    Cost,
    SampleTable,
    Unit,
    summarise,
    worst_case,
)
from robustbench_elliptical.evaluation.provenance import ImageHash, model_record
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.evaluation.tasks import Advance, TaskEvaluation
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.results import (
    AccuracySummary,
    AttackRecord,
    DataRecord,
    ImageClassificationResults,
)

__all__ = ["ImageTask"]

_TASK: Final = "image-classification"


@dataclass
class _Subject:
    """A model with the data it is evaluated on."""

    model: ImageClassifier
    data: ImageData
    indices: Sequence[int]
    witness: Witness | None
    digest: ImageHash = field(default_factory=ImageHash)


class ImageTask(TaskEvaluation):
    """Image classifiers under attack.

    Parameters
    ----------
    models
        On the settings' device.
    settings
        What to evaluate.

    Raises
    ------
    UsageError
        If an attack, an epsilon or the data is not usable, or does not fit a model.
    """

    def __init__(self, models: Sequence[ImageClassifier], settings: EvaluationSettings) -> None:
        self._settings = settings
        self._attacks = plan_attacks(settings.chosen_attacks(_TASK), settings.epsilons)
        self._subjects = [
            _subject(model, settings, str(number)) for number, model in enumerate(models)
        ]
        self._table = SampleTable()

    @property
    def total(self) -> int:
        """Images times attacks and epsilons, clean included."""
        units = 1 + sum(len(attack.epsilons) for attack in self._attacks)
        return units * sum(len(subject.indices) for subject in self._subjects)

    @property
    def started(self) -> bool:
        """Whether a batch was finished."""
        return bool(self._table.units())

    def run(self, advance: Advance) -> None:
        """Evaluate every model, batch by batch."""
        device = self._settings.device
        for subject in self._subjects:
            for batch in subject.data.batches(subject.indices, self._settings.batch_size):
                placed = ImageBatch(
                    batch.images.to(device), batch.labels.to(device), batch.sample_ids
                )
                subject.digest.update(batch)
                evaluate_batch(
                    subject.model,
                    placed,
                    self._attacks,
                    self._table,
                    seed=self._settings.seed,
                    on_unit=_meter(advance, len(batch.labels)),
                    witness=subject.witness,
                )

    def results(self) -> ImageClassificationResults:
        """Summarise the records so far."""
        reached = {unit.model for unit in self._table.units()}
        subjects = [each for each in self._subjects if each.model.name in reached]
        models = [subject.model for subject in subjects]
        records = [_attack_record(attack) for attack in self._attacks]
        summaries = _summaries(self._table, records)
        data = self._settings.chosen_data(_TASK)
        witnesses = [each.witness for each in subjects if each.witness is not None]
        return ImageClassificationResults(
            models=[model_record(model) for model in models],
            data=[_data_record(subject, data) for subject in subjects],
            attacks=records,
            summaries=summaries,
            findings=find(models, records, data, self._table, summaries, self._settings.batch_size),
            internals=[record for witness in witnesses for record in witness.internals()],
            pictures=[record for witness in witnesses for record in witness.pictures().records],
        )

    def rows(self) -> pd.DataFrame:
        """Return the records, with the columns of `samples.csv`."""
        return self._table.frame()

    def pictures(self) -> dict[str, npt.NDArray[np.float16]]:
        """Return the arrays of the pictures that the results name."""
        witnesses = [each.witness for each in self._subjects if each.witness is not None]
        return {
            name: array
            for witness in witnesses
            for name, array in witness.pictures().arrays.items()
        }


def _meter(advance: Advance, size: int) -> Callable[[Unit], None]:
    return lambda unit: advance(f"{unit.model} {unit.attack}", size)


def _subject(model: ImageClassifier, settings: EvaluationSettings, name: str) -> _Subject:
    data = load_data(
        settings.chosen_data(_TASK),
        preprocessing=model.description.preprocessing,
        num_classes=model.num_classes,
    )
    _check_fit(model, data)
    indices = select(data, settings.limit, settings.seed)
    witness = None
    if settings.examples:
        chosen = select(data, min(settings.examples, len(indices)), settings.seed)
        witness = Witness(model, [data.sample_ids[index] for index in chosen], name)
    return _Subject(model, data, indices, witness)


def _check_fit(model: ImageClassifier, data: ImageData) -> None:
    if data.num_classes != model.num_classes:
        raise UsageError(
            f"model {model.name} has {model.num_classes} classes, data {data.name} has "
            f"{data.num_classes}; choose a model trained on that data"
        )
    if tuple(data.image_shape) != tuple(model.input_shape):
        raise UsageError(
            f"model {model.name} takes images of shape {_shape(model.input_shape)}, data "
            f"{data.name} has {_shape(data.image_shape)}; resize the data or choose another model"
        )


def _shape(shape: Sequence[int]) -> str:
    return "x".join(str(size) for size in shape)


def _summaries(table: SampleTable, attacks: Sequence[AttackRecord]) -> list[AccuracySummary]:
    summaries = [summarise(unit, table.outcomes(unit), table.cost(unit)) for unit in table.units()]
    real = {attack.label for attack in attacks if attack.knowledge != "none"}
    cells: dict[tuple[str, str | None, float], list[Unit]] = {}
    for unit in table.units():
        if unit.attack in real:
            cells.setdefault((unit.model, unit.norm, unit.epsilon), []).append(unit)
    for (model, norm, epsilon), units in cells.items():
        if len(units) > 1:
            costs = [table.cost(unit) for unit in units]
            cost = Cost(
                sum(each.forwards for each in costs),
                sum(each.backwards for each in costs),
                sum(each.seconds for each in costs),
            )
            combined = Unit(model, WORST_CASE, norm, epsilon)
            summaries.append(summarise(combined, worst_case(table, units), cost))
    return summaries


def _attack_record(attack: PlannedAttack) -> AttackRecord:
    choice = attack.choice
    return AttackRecord(
        label=choice.label,
        name=choice.name,
        knowledge=choice.knowledge,
        norm=choice.norm,
        settings=choice.resolved(),
        epsilons=list(attack.epsilons),
    )


def _data_record(subject: _Subject, name: str) -> DataRecord:
    names = subject.data.class_names
    return DataRecord(
        name=name,
        model=subject.model.name,
        samples=subject.digest.samples,
        sha256=subject.digest.hexdigest(),
        class_names=None if names is None else list(names),
    )

"""The whole evaluation: load, check, attack, judge, summarise."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import pandas as pd
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageBatch, ImageData, load_data, select
from robustbench_elliptical.evaluation.engine import PlannedAttack, evaluate_batch
from robustbench_elliptical.evaluation.findings import find
from robustbench_elliptical.evaluation.provenance import DataHash, git_commit, versions
from robustbench_elliptical.evaluation.records import (
    WORST_CASE,
    Cost,
    SampleTable,
    Unit,
    summarise,
    worst_case,
)
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.models import ImageClassifier, parse_model, state_sha256
from robustbench_elliptical.results import (
    AttackRecord,
    DataRecord,
    ModelRecord,
    Results,
    RunRecord,
    Summary,
)

__all__ = ["Evaluation", "Progress", "evaluate"]

Progress = Callable[[str, int, int], None]
"""Called with what was just done, the sample evaluations done and those in all."""


class Evaluation(NamedTuple):
    """What an evaluation found."""

    results: Results
    samples: pd.DataFrame
    """One row for each model, attack, epsilon and sample; columns `SAMPLE_COLUMNS`."""


@dataclass
class _Subject:
    """A model with the data it is evaluated on."""

    model: ImageClassifier
    data: ImageData
    indices: Sequence[int]
    digest: DataHash = field(default_factory=DataHash)


def evaluate(
    settings: EvaluationSettings,
    *,
    models: Sequence[ImageClassifier] | None = None,
    command: str = "",
    on_progress: Progress | None = None,
) -> Evaluation:
    """Run an evaluation.

    Everything is loaded and checked before the first attack. An interruption (Ctrl-C) ends it
    early with the finished parts and `results.complete` false.

    Parameters
    ----------
    settings
        What to evaluate.
    models
        Models at hand, such as an `ImageClassifier` around a network of your own, instead of
        loading those that the settings name; they must lie on the settings' device.
    command
        The command line that repeats it, for the record.
    on_progress
        Called after every batch of every attack at every epsilon.

    Raises
    ------
    UsageError
        If a setting, a model or the data is not usable.
    KeyboardInterrupt
        If interrupted before anything was finished.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    attacks = settings.planned_attacks()
    subjects = _subjects(models or _load(settings), settings)
    table = SampleTable()
    complete = True
    try:
        _run(subjects, attacks, table, settings, on_progress)
    except KeyboardInterrupt:
        if not table.units():
            raise
        complete = False
    reached = {unit.model for unit in table.units()}
    subjects = [subject for subject in subjects if subject.model.name in reached]
    models = [subject.model for subject in subjects]
    records = [_attack_record(attack) for attack in attacks]
    summaries = _summaries(table, records)
    results = Results(
        complete=complete,
        run=RunRecord(
            created=started.isoformat(timespec="seconds"),
            command=command,
            seed=settings.seed,
            limit=settings.limit,
            batch_size=settings.batch_size,
            device=settings.device,
            threads=torch.get_num_threads(),
            seconds=time.perf_counter() - clock,
            versions=versions(),
            git_commit=git_commit(),
        ),
        models=[_model_record(model) for model in models],
        data=[_data_record(subject, settings) for subject in subjects],
        attacks=records,
        summaries=summaries,
        findings=find(models, records, settings.data, table, summaries),
    )
    return Evaluation(results, table.frame())


def _load(settings: EvaluationSettings) -> list[ImageClassifier]:
    device = _device(settings.device)
    choices = [parse_model(text) for text in settings.models]
    return [choice.load(device=device) for choice in choices]


def _subjects(models: Sequence[ImageClassifier], settings: EvaluationSettings) -> list[_Subject]:
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"model {twice[0]} is given twice; to compare two checkpoints of it, write each a card "
            "with a name of its own"
        )
    subjects = []
    for model in models:
        data = load_data(
            settings.data,
            preprocessing=model.description.preprocessing,
            num_classes=model.num_classes,
        )
        _check_fit(model, data)
        subjects.append(_Subject(model, data, select(data, settings.limit, settings.seed)))
    return subjects


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(
            f"device must be one that torch can compute on here, such as cpu, got {name!r}"
        ) from None
    return device


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


def _run(
    subjects: Sequence[_Subject],
    attacks: Sequence[PlannedAttack],
    table: SampleTable,
    settings: EvaluationSettings,
    on_progress: Progress | None,
) -> None:
    units = 1 + sum(len(attack.epsilons) for attack in attacks)
    total = units * sum(len(subject.indices) for subject in subjects)
    done = 0
    for subject in subjects:
        for batch in subject.data.batches(subject.indices, settings.batch_size):
            placed = ImageBatch(
                batch.images.to(settings.device),
                batch.labels.to(settings.device),
                batch.sample_ids,
            )

            def advance(unit: Unit, size: int = len(batch.labels)) -> None:
                nonlocal done
                done += size
                if on_progress is not None:
                    on_progress(f"{unit.model} {unit.attack}", done, total)

            subject.digest.update(batch)
            evaluate_batch(
                subject.model, placed, attacks, table, seed=settings.seed, on_unit=advance
            )


def _summaries(table: SampleTable, attacks: Sequence[AttackRecord]) -> list[Summary]:
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


def _model_record(model: ImageClassifier) -> ModelRecord:
    description = model.description
    return ModelRecord(
        name=model.name,
        family=description.family or model.name,
        seed=description.seed,
        weights_sha256=description.weights_sha256 or state_sha256(model.network.state_dict()),
        description=description.model_dump(mode="json"),
    )


def _data_record(subject: _Subject, settings: EvaluationSettings) -> DataRecord:
    names = subject.data.class_names
    return DataRecord(
        name=settings.data,
        model=subject.model.name,
        samples=subject.digest.samples,
        sha256=subject.digest.hexdigest(),
        class_names=None if names is None else list(names),
    )

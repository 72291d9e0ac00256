"""The whole evaluation: load and check everything, then task by task."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pandas as pd
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.images.task import ImageTask
from robustbench_elliptical.evaluation.provenance import git_commit, versions
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.evaluation.tasks import TaskEvaluation
from robustbench_elliptical.evaluation.text.floors import floors
from robustbench_elliptical.evaluation.text.task import LanguageTask
from robustbench_elliptical.models import EvaluatedLanguageModel, ImageClassifier, parse_model
from robustbench_elliptical.results import (
    DOCUMENT_COLUMNS,
    SAMPLE_COLUMNS,
    Evaluation,
    Results,
    RunRecord,
)

__all__ = ["Progress", "evaluate"]

Model = ImageClassifier | EvaluatedLanguageModel

Progress = Callable[[str, int, int], None]
"""Called with what was just done, the sample evaluations done and those in all."""


def evaluate(
    settings: EvaluationSettings,
    *,
    models: Sequence[Model] | None = None,
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
        Models at hand, such as an `ImageClassifier` or an `EvaluatedLanguageModel` around a network
        of your own, instead of loading those that the settings name; they must lie on the settings'
        device. A language model's vocabulary decides which shipped count model stands beside it.
    command
        The command line that repeats it, for the record.
    on_progress
        Called after every batch of every attack at every epsilon or rate.

    Raises
    ------
    UsageError
        If a setting, a model or the data is not usable.
    KeyboardInterrupt
        If interrupted before anything was finished.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    tasks = _tasks(models or _load(settings), settings)
    complete = _run(tasks, on_progress)
    done = [task for task in tasks if task.started]
    found = [task.results() for task in done]
    rows = {each.task: task.rows() for each, task in zip(found, done, strict=True)}
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
            settings=settings.model_dump(mode="json"),
        ),
        tasks=found,
    )
    return Evaluation(
        results,
        rows.get("image-classification", pd.DataFrame(columns=list(SAMPLE_COLUMNS))),
        rows.get("language-modelling", pd.DataFrame(columns=list(DOCUMENT_COLUMNS))),
        {name: array for task in done for name, array in task.pictures().items()},
    )


def _load(settings: EvaluationSettings) -> list[Model]:
    device = _device(settings.device)
    choices = [parse_model(text) for text in settings.chosen_models()]
    settings.check_tasks([choice.task for choice in choices])
    return [choice.load(device=device) for choice in choices]


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(
            f"device must be one that torch can compute on here, such as cpu, got {name!r}"
        ) from None
    return device


def _tasks(models: Sequence[Model], settings: EvaluationSettings) -> list[TaskEvaluation]:
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"model {twice[0]} is given twice; to compare two checkpoints of it, write each a card "
            "with a name of its own"
        )
    images = [model for model in models if isinstance(model, ImageClassifier)]
    language = [model for model in models if isinstance(model, EvaluatedLanguageModel)]
    tasks: list[TaskEvaluation] = []
    if images:
        tasks.append(ImageTask(images, settings))
    if language:
        with_floors = [*language, *floors(language, _device(settings.device))]
        tasks.append(LanguageTask(with_floors, settings))
    return tasks


def _run(tasks: Sequence[TaskEvaluation], on_progress: Progress | None) -> bool:
    """Run the tasks; return whether all were finished."""
    total, done = sum(task.total for task in tasks), 0

    def advance(description: str, count: int) -> None:
        nonlocal done
        done += count
        if on_progress is not None:
            on_progress(description, done, total)

    try:
        for task in tasks:
            task.run(advance)
    except KeyboardInterrupt:
        if not any(task.started for task in tasks):
            raise
        return False
    return True

"""Evaluate language models: read the documents, contaminate, score, summarise."""

from collections.abc import Callable, Sequence
from typing import Final

import pandas as pd

from robustbench_elliptical.attacks.text import Lexicon
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import TextSplit, load_text
from robustbench_elliptical.evaluation.modes import frozen
from robustbench_elliptical.evaluation.provenance import model_record
from robustbench_elliptical.evaluation.settings import CLEAN, EvaluationSettings
from robustbench_elliptical.evaluation.tasks import Advance, TaskEvaluation
from robustbench_elliptical.evaluation.text.documents import Reading, groups
from robustbench_elliptical.evaluation.text.engine import Reader, evaluate_documents
from robustbench_elliptical.evaluation.text.findings import find
from robustbench_elliptical.evaluation.text.plan import PlannedSwap, plan_swaps
from robustbench_elliptical.evaluation.text.subject import (
    attackable,
    counts_pairs,
    make_subject,
)
from robustbench_elliptical.evaluation.text.table import (
    DocumentTable,
    TextUnit,
    compare,
    summarise,
)
from robustbench_elliptical.models import EvaluatedLanguageModel
from robustbench_elliptical.results import (
    LanguageModellingResults,
    TextAttackRecord,
)

__all__ = ["LanguageTask"]

_TASK: Final = "language-modelling"


class LanguageTask(TaskEvaluation):
    """Language models on contaminated text.

    Parameters
    ----------
    models
        On the settings' device.
    settings
        What to evaluate.

    Raises
    ------
    UsageError
        If an attack, a rate or the text is not usable, or does not fit a model.
    """

    def __init__(
        self, models: Sequence[EvaluatedLanguageModel], settings: EvaluationSettings
    ) -> None:
        self._settings = settings
        self._attacks = plan_swaps(settings.chosen_attacks(_TASK), settings.rates)
        self._text = _open(models, settings)
        self._reading = Reading(self._text, settings.limit, settings.document_words, settings.seed)
        _check_attacks(self._attacks, models, settings)
        self._lexicon = _lexicon(models)
        windows = [model.context_length for model in models if not counts_pairs(model)]
        self._subjects = [
            make_subject(
                model,
                self._reading,
                settings.window or (windows[0] if windows and counts_pairs(model) else None),
                settings,
            )
            for model in models
        ]
        self._table = DocumentTable()
        self._documents = len(self._reading)

    @property
    def total(self) -> int:
        """Documents times attacks and rates, clean included."""
        return self._documents * sum(
            1 + sum(len(each.rates) for each in _runnable(self._attacks, subject.model))
            for subject in self._subjects
        )

    @property
    def started(self) -> bool:
        """Whether a group of documents was finished."""
        return bool(self._table.units())

    def run(self, advance: Advance) -> None:
        """Evaluate every model, some documents at a time."""
        for subject in self._subjects:
            reader = Reader(subject.model, subject.protocol, self._lexicon, self._settings.seed)
            enough = subject.protocol.batch_size * subject.protocol.stride
            size = enough if subject.protocol.context == "document" else None
            for documents in groups(self._reading, size):
                for document in documents:
                    subject.read(document)
                with frozen(subject.model):
                    evaluate_documents(
                        reader,
                        documents,
                        self._attacks,
                        self._table,
                        _meter(advance, len(documents)),
                    )

    def results(self) -> LanguageModellingResults:
        """Summarise the records so far."""
        units = self._table.units()
        reached = {unit.model for unit in units}
        subjects = [each for each in self._subjects if each.model.name in reached]
        models = [subject.model for subject in subjects]
        attacks = [_attack_record(attack) for attack in self._attacks]
        seed = self._settings.seed
        summaries = [summarise(self._table, unit, seed) for unit in units]
        first = models[0].name
        compared = [
            compare(self._table, unit, first, seed) for unit in units if unit.model != first
        ]
        data = self._settings.chosen_data(_TASK)
        return LanguageModellingResults(
            models=[model_record(model) for model in models],
            data=[subject.text_record(self._text, data) for subject in subjects],
            protocols=[subject.protocol_record() for subject in subjects],
            attacks=attacks,
            summaries=summaries,
            comparisons=[each for each in compared if each is not None],
            findings=find(
                models,
                {each.model.name: each.protocol for each in subjects},
                {each.model.name: each.causality for each in subjects if each.causality},
                attacks,
                summaries,
                data,
                self._settings.split,
                self._settings.batch_size,
            ),
        )

    def rows(self) -> pd.DataFrame:
        """Return the records, with the columns of `documents.csv`."""
        return self._table.frame()


def _open(models: Sequence[EvaluatedLanguageModel], settings: EvaluationSettings) -> TextSplit:
    data = settings.chosen_data(_TASK)
    for model in models:
        if model.vocabulary is not None:
            load_text(data, settings.split, vocabulary=model.vocabulary)
    return load_text(data, settings.split)


def _lexicon(models: Sequence[EvaluatedLanguageModel]) -> Lexicon | None:
    known = [model.vocabulary for model in models if model.vocabulary is not None]
    return known[0] if known else None


def _check_attacks(
    attacks: Sequence[PlannedSwap],
    models: Sequence[EvaluatedLanguageModel],
    settings: EvaluationSettings,
) -> None:
    worst = [each.choice.name for each in attacks if each.choice.knowledge != "none"]
    if not worst:
        return
    if settings.context == "stream":
        raise UsageError(
            f"attack {worst[0]} attacks one document at a time and needs context=document, got "
            "stream"
        )
    named = [model for model in models if not counts_pairs(model)]
    without = [each.name for each in named or models if not attackable(each)]
    if without:
        raise UsageError(
            f"attack {worst[0]} needs the gradients and the word vocabulary of a model, which "
            f"{without[0]} does not offer; leave one of the two out"
        )


def _runnable(
    attacks: Sequence[PlannedSwap], model: EvaluatedLanguageModel
) -> Sequence[PlannedSwap]:
    return [each for each in attacks if each.choice.knowledge == "none" or attackable(model)]


def _meter(advance: Advance, size: int) -> Callable[[TextUnit], None]:
    def tell(unit: TextUnit) -> None:
        rate = "" if unit.attack == CLEAN else f" {unit.rate:.1%}"
        advance(f"{unit.model} {unit.attack}{rate}", size)

    return tell


def _attack_record(attack: PlannedSwap) -> TextAttackRecord:
    choice = attack.choice
    return TextAttackRecord(
        label=choice.label,
        name=choice.name,
        knowledge=choice.knowledge,
        settings=choice.resolved(),
        rates=list(attack.rates),
    )

"""The frozen run: what a new checkpoint is held against."""

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, FiniteFloat

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.gate.cells import CLEAN
from robustbench_elliptical.results import Evaluation, Results
from robustbench_elliptical.results.records import Record

__all__ = [
    "BASELINE_VERSION",
    "Baseline",
    "DocumentUnit",
    "FrozenDocuments",
    "FrozenSamples",
    "SampleUnit",
    "freeze",
    "frozen_documents",
    "frozen_samples",
]

BASELINE_VERSION = 1

_LETTERS = {"robust": "r", "fooled": "f", "skipped": "s", "failed": "x"}


class SampleUnit(Record):
    """The outcomes of one attack at one epsilon."""

    attack: str
    """Label of the attack, or `clean`."""
    epsilon: float
    """In [0, 1] pixels."""
    outcomes: str = Field(pattern="^[rfsx]*$")
    """One letter a sample: r robust, f fooled, s skipped (wrong before the attack), x failed."""

    def right(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return for each sample whether it was classified right in spite of the attack."""
        return np.array([letter == "r" for letter in self.outcomes], dtype=bool)


class FrozenSamples(Record):
    """The outcomes of an image classifier."""

    model: str
    """Its name in the results."""
    ids: list[str]
    """Identifiers of the samples."""
    labels: list[int]
    """Their classes."""
    units: list[SampleUnit]
    """One an attack and epsilon."""


class DocumentUnit(Record):
    """The losses under one contamination at one rate."""

    attack: str
    """Label of the contamination, or `clean`."""
    rate: float
    """Share of the eligible words that were swapped."""
    losses: list[FiniteFloat]
    """Sum over each document's targets, in nats."""
    targets: list[int]
    """How many they are."""
    eligible: list[int]
    """Words that might have been swapped."""


class FrozenDocuments(Record):
    """The losses of a language model."""

    model: str
    """Its name in the results."""
    ids: list[str]
    """Identifiers of the documents."""
    units: list[DocumentUnit]
    """One a contamination and rate."""


class Baseline(Record):
    """A run with everything that a check needs, in one file."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    results: Results
    """The record of the run: settings, data, models with the hashes of their weights."""
    samples: list[FrozenSamples] = Field(default_factory=list)
    """One an image classifier."""
    documents: list[FrozenDocuments] = Field(default_factory=list)
    """One a language model."""


def freeze(evaluation: Evaluation) -> Baseline:
    """Return the baseline of a run.

    Raises
    ------
    UsageError
        If the run is not complete, does not say its settings, or holds samples that failed: nothing
        can be held against an answer that is not there.
    """
    results = evaluation.results
    if not results.complete:
        raise UsageError("a baseline must be a complete run, this one was interrupted; rerun it")
    if results.run.settings is None:
        raise UsageError(
            "a baseline must say all settings of its run, and results of version 1 do not; rerun it"
        )
    for rows, what in ((evaluation.samples, "samples"), (evaluation.documents, "documents")):
        failed = int((rows["outcome"] == "failed").sum())
        if failed:
            raise UsageError(
                f"a baseline must have an outcome for every sample, in this run {failed} rows of "
                f"{what} failed; see their reasons, mend the model or leave the attack out"
            )
    images = [] if results.images is None else [each.name for each in results.images.models]
    language = [] if results.language is None else [each.name for each in results.language.models]
    return Baseline(
        results=results,
        samples=[frozen_samples(evaluation.samples, name) for name in images],
        documents=[frozen_documents(evaluation.documents, name) for name in language],
    )


def frozen_samples(samples: pd.DataFrame, model: str) -> FrozenSamples:
    """Return the outcomes of one model, samples in the order of the clean run.

    Raises
    ------
    UsageError
        If the rows of an attack are not of the samples of the clean run.
    """
    groups = _groups(samples, model, "epsilon", "sample_id")
    clean = groups[CLEAN, 0.0]
    units = [
        SampleUnit(
            attack=attack,
            epsilon=epsilon,
            outcomes="".join(_LETTERS[outcome] for outcome in group["outcome"]),
        )
        for (attack, epsilon), group in groups.items()
    ]
    return FrozenSamples(
        model=model,
        ids=[str(each) for each in clean["sample_id"]],
        labels=[int(each) for each in clean["label"]],
        units=units,
    )


def frozen_documents(documents: pd.DataFrame, model: str) -> FrozenDocuments:
    """Return the losses of one model, none of which failed; as `frozen_samples`."""
    groups = _groups(documents, model, "rate", "document")
    units = [
        DocumentUnit(
            attack=attack,
            rate=rate,
            losses=[float(each) for each in group["loss"]],
            targets=[int(each) for each in group["targets"]],
            eligible=[int(each) for each in group["eligible"]],
        )
        for (attack, rate), group in groups.items()
    ]
    ids = [str(each) for each in groups[CLEAN, 0.0]["document"]]
    return FrozenDocuments(model=model, ids=ids, units=units)


def _groups(
    rows: pd.DataFrame, model: str, size: str, name: str
) -> dict[tuple[str, float], pd.DataFrame]:
    """Return the rows of each attack and size of one model, all of the same samples in order."""
    own = rows[rows["model"] == model]
    columns = zip(own["attack"], own[size], strict=True)
    keys = list(dict.fromkeys((str(attack), float(value)) for attack, value in columns))
    groups = {
        (attack, value): own[(own["attack"] == attack) & (own[size] == value)]
        for attack, value in keys
    }
    lists = [list(group[name]) for group in groups.values()]
    if (CLEAN, 0.0) not in groups or any(each != lists[0] for each in lists):
        raise UsageError(
            f"the run must have the same samples under every attack, and rows of {model} are "
            "missing; rerun it"
        )
    return groups

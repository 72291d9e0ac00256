"""The result of an evaluation, version 1: everything a report, a gate or a rerun needs.

A result is a folder: `results.json` holds a `Results` record, `samples.csv` one row for each
model, attack, epsilon and sample. Reports and gates read these two files and nothing else.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

__all__ = [
    "SAMPLE_COLUMNS",
    "SCHEMA_VERSION",
    "AttackRecord",
    "DataRecord",
    "Finding",
    "ModelRecord",
    "Outcome",
    "Results",
    "RunRecord",
    "Summary",
]

SCHEMA_VERSION = 1

Outcome = Literal["fooled", "robust", "skipped", "failed"]

SAMPLE_COLUMNS = (
    "model",
    "attack",
    "epsilon",
    "sample_id",
    "label",
    "outcome",
    "prediction",
    "distance",
    "forwards",
    "backwards",
    "reason",
)
"""Columns of `samples.csv`; `distance` is in the attack's norm and [0, 1] pixels."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RunRecord(_Record):
    """When, where and how the evaluation ran."""

    created: str
    """Start of the run, ISO 8601, UTC."""
    command: str
    """The command line that repeats it."""
    seed: int
    """Seed of the selection of samples and of every attack."""
    limit: int | None
    """Largest number of samples, class-balanced, or all."""
    batch_size: int
    """Samples attacked together; it changes no outcome but for rounding."""
    device: str
    """Where the models ran."""
    threads: int
    """CPU threads of torch."""
    seconds: float
    """Wall time of the whole run."""
    versions: dict[str, str]
    """Versions of this package, Python and the libraries that compute."""
    git_commit: str | None
    """Commit of the checkout the package was run from, with `-dirty` if it had changes."""


class ModelRecord(_Record):
    """What was evaluated."""

    name: str
    """The name used in the samples and summaries."""
    family: str
    """Shared by models that differ in their seed only."""
    seed: int | None
    """Training seed, if the card states it."""
    weights_sha256: str
    """Hash of the parameters and buffers, whatever file they came from."""
    description: dict[str, Any]
    """Architecture, attention and its settings, checkpoint, preprocessing, claimed accuracy."""


class DataRecord(_Record):
    """What it was evaluated on, after one model's preprocessing."""

    name: str
    """As given on the command line."""
    model: str
    """The model whose preprocessing was used."""
    samples: int
    """Number of samples read: all selected ones, fewer after an interruption."""
    sha256: str
    """Hash of the ids, labels and pixels evaluated, in order."""
    class_names: list[str] | None
    """Names by label, if known."""


class AttackRecord(_Record):
    """One attack with all its settings."""

    label: str
    """The name used in the samples and summaries."""
    name: str
    """Registered name of the attack."""
    knowledge: Literal["none", "black-box", "white-box"]
    """What it asks of the model: nothing, logits, or gradients."""
    norm: str
    """Norm in which epsilon and distances are measured."""
    settings: dict[str, Any]
    """Every setting, defaults included."""
    epsilons: list[float]
    """In [0, 1] pixels, increasing."""


class Summary(_Record):
    """Accuracy and cost of one model under one attack at one epsilon."""

    model: str
    """Name of the model."""
    attack: str
    """Label of the attack; `clean` for none, `worst-case` for the attacks of one norm together."""
    norm: str | None
    """Norm of epsilon; none for `clean`."""
    epsilon: float
    """In [0, 1] pixels; 0 for `clean`."""
    samples: int
    """Samples evaluated: the denominator of the accuracy."""
    robust: int
    """Classified right and not fooled; for `clean`, classified right."""
    fooled: int
    """Classified right before the attack and wrong after it."""
    skipped: int
    """Classified wrong before the attack, so not attacked."""
    failed: int
    """Without a usable answer (not finite, outside the ball); never counted as robust."""
    accuracy: float
    """robust / samples."""
    low: float
    """Lower end of the Wilson 95 % interval."""
    high: float
    """Upper end of the Wilson 95 % interval."""
    forwards: int
    """Forward passes asked by the attack, one an image; shared epsilons pay once."""
    backwards: int
    """Backward passes, one an image."""
    seconds: float
    """Wall time of attack and verification."""


class Finding(_Record):
    """A red flag: why a number should not be believed as it stands, and what to do."""

    id: str
    """Stable name of the rule that found it."""
    severity: Literal["error", "warning", "notice"]
    """error: the number is wrong; warning: it may overstate robustness; notice: read with care."""
    model: str
    """Name of the model."""
    attack: str | None
    """Label of the attack it is about."""
    epsilon: float | None
    """Epsilon it is about, in [0, 1] pixels."""
    evidence: str
    """What was seen, as a sentence with numbers."""
    remedy: str
    """What to do about it."""


class Results(_Record):
    """One evaluation."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    task: Literal["image-classification"] = "image-classification"
    """What the models do."""
    complete: bool
    """Whether every part ran; false after an interruption: the numbers hold for what is there."""
    run: RunRecord
    """When, where and how."""
    models: list[ModelRecord]
    """In the order given."""
    data: list[DataRecord]
    """One a model."""
    attacks: list[AttackRecord]
    """In the order given."""
    summaries: list[Summary]
    """Everything the tables show; recomputable from the samples."""
    findings: list[Finding]
    """Red flags, most severe first."""

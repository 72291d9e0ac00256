"""What an evaluation of image classifiers found: accuracy under attack."""

from typing import Any, Literal

from pydantic import Field

from robustbench_elliptical.results.internals import InternalsRecord, PictureRecord
from robustbench_elliptical.results.records import Finding, Knowledge, ModelRecord, Record

__all__ = [
    "SAMPLE_COLUMNS",
    "AccuracySummary",
    "AttackRecord",
    "DataRecord",
    "ImageClassificationResults",
    "Outcome",
]

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
"""Columns of `samples.csv`, one row for each model, attack, epsilon and sample; `distance` is in
the attack's norm and [0, 1] pixels."""


class DataRecord(Record):
    """What a model was evaluated on, after its own preprocessing."""

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


class AttackRecord(Record):
    """One attack with all its settings."""

    label: str
    """The name used in the samples and summaries."""
    name: str
    """Registered name of the attack."""
    knowledge: Knowledge
    """What it asks of the model."""
    norm: str
    """Norm in which epsilon and distances are measured."""
    settings: dict[str, Any]
    """Every setting, defaults included."""
    epsilons: list[float]
    """In [0, 1] pixels, increasing."""


class AccuracySummary(Record):
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


class ImageClassificationResults(Record):
    """Image classifiers under attack."""

    task: Literal["image-classification"] = "image-classification"
    """What the models do."""
    models: list[ModelRecord]
    """In the order given."""
    data: list[DataRecord]
    """One a model."""
    attacks: list[AttackRecord]
    """In the order given."""
    summaries: list[AccuracySummary]
    """Everything the tables show; recomputable from the samples."""
    findings: list[Finding]
    """Red flags, most severe first."""
    internals: list[InternalsRecord] = Field(default_factory=list)
    """Inside of the models on the examples; none for models that cannot be looked into."""
    pictures: list[PictureRecord] = Field(default_factory=list)
    """Some examples themselves."""

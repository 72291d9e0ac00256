"""The records that every task shares: the run, a model, a red flag."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["Finding", "Knowledge", "ModelRecord", "Record", "RunRecord"]

Knowledge = Literal["none", "black-box", "white-box"]
"""What an attack asks of the model: nothing, its outputs, or gradients too."""


class Record(BaseModel):
    """Part of a result; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RunRecord(Record):
    """When, where and how the evaluation ran."""

    created: str
    """Start of the run, ISO 8601, UTC."""
    command: str
    """The command line that repeats it."""
    seed: int
    """Seed of the selection of samples and of every attack."""
    limit: int | None
    """Largest number of samples (images, class-balanced, or documents), or all."""
    batch_size: int
    """Images attacked or windows read together; it changes no outcome but for rounding."""
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
    settings: dict[str, Any] | None = None
    """Every setting of the evaluation, defaults included; none in results of version 1."""


class ModelRecord(Record):
    """What was evaluated."""

    name: str
    """The name used in the rows and summaries."""
    family: str
    """Shared by models that differ in their seed only."""
    seed: int | None
    """Training seed, if the card states it."""
    weights_sha256: str
    """Hash of the parameters and buffers, whatever file they came from."""
    description: dict[str, Any]
    """Architecture, attention and its settings, checkpoint, inputs, claimed measurements."""


class Finding(Record):
    """A red flag: why a number should not be believed as it stands, and what to do."""

    id: str
    """Stable name of the rule that found it."""
    severity: Literal["error", "warning", "notice"]
    """error: the number is wrong; warning: it may overstate robustness; notice: read with care."""
    model: str
    """Name of the model."""
    attack: str | None
    """Label of the attack it is about."""
    epsilon: float | None = None
    """Epsilon it is about, in [0, 1] pixels."""
    rate: float | None = None
    """Rate of contamination it is about, in [0, 1]."""
    evidence: str
    """What was seen, as a sentence with numbers."""
    remedy: str
    """What to do about it."""

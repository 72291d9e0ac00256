"""What the cards of every task have in common."""

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CardBase", "CheckpointFile", "Section", "Training", "VocabularyFile"]


class Section(BaseModel):
    """A part of a card; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _NamedFile(Section):
    file: str = Field(min_length=1)
    """Relative to the card; for shipped cards, relative to ``models/checkpoints``."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the file; another file is refused."""


class CheckpointFile(_NamedFile):
    """Where the weights lie."""


class VocabularyFile(_NamedFile):
    """Where the words lie that the weights are for: one a line, in the order of their numbers."""


class Training(Section):
    """How the weights came about."""

    command: str | None = None
    """The command line that trains the model again."""
    recipe: str | None = None
    """Name of the training recipe."""
    recipe_version: int | None = Field(default=None, ge=1)
    """Its version."""
    epochs: int | None = Field(default=None, ge=1)
    """Passes over the training set."""
    notes: str | None = None
    """Anything else worth knowing: hardware, duration, deviations."""


class CardBase(Section):
    """What a checkpoint of any task doesn't say."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """What the command line and results call the model."""
    task: str
    """What the model does."""
    family: str
    """Models that differ by their seed alone share it."""
    seed: int | None = None
    """The seed of this one."""
    licence: str | None = None
    """Of the weights."""
    paper: str | None = None
    """Where the model is described."""
    source: str | None = None
    """Where the weights come from."""
    notes: str | None = None
    """What a user should know."""

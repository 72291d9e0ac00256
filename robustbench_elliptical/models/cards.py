"""Model cards: what a checkpoint cannot say about itself, as one TOML file a user can write.

A checkpoint holds tensors. Which attention mechanism they were trained with, how pixels are
normalised, how images are cropped and what accuracy to expect is written on the card.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.toml import read_toml
from robustbench_elliptical.models.architecture import (
    AttentionChoice,
    VisionTransformerArchitecture,
)
from robustbench_elliptical.models.attention import MECHANISMS

__all__ = [
    "Card",
    "CheckpointFile",
    "InputNormalisation",
    "Measurement",
    "Training",
    "card_to_toml",
    "checkpoint_path",
    "list_models",
    "load_card",
    "resolved_attention",
    "shipped_cards",
]

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InputNormalisation(_Section):
    """Per-channel normalisation of [0, 1] pixels; it happens inside the model."""

    mean: tuple[_Finite, ...]
    """Subtracted first."""
    std: tuple[_Positive, ...]
    """Divided by then."""


class CheckpointFile(_Section):
    """Where the weights lie."""

    file: str = Field(min_length=1)
    """Relative to the card; for shipped cards, relative to ``models/checkpoints``."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the file; another file is refused."""


class Training(_Section):
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


class Measurement(_Section):
    """A measured clean accuracy, to compare a new measurement with."""

    data: str
    """The data set, as the command line names it ("fashion-mnist")."""
    n: int = Field(ge=1)
    """Number of samples."""
    correct: int = Field(ge=0)
    """How many of them the model got right."""
    clean_accuracy: float | None = None
    """correct / n, for the reader."""

    @field_validator("correct")
    @classmethod
    def _at_most_n(cls, correct: int, info: ValidationInfo) -> int:
        if correct > info.data.get("n", correct):
            raise ValueError(f"must be at most n = {info.data['n']}")
        return correct

    @field_validator("clean_accuracy")
    @classmethod
    def _is_the_quotient(cls, accuracy: float | None, info: ValidationInfo) -> float | None:
        if accuracy is not None and {"n", "correct"} <= info.data.keys():
            quotient = info.data["correct"] / info.data["n"]
            if not abs(accuracy - quotient) <= 5e-4:
                raise ValueError(f"must be correct / n = {quotient:.4f}")
        return accuracy

    @property
    def accuracy(self) -> float:
        """The clean accuracy."""
        return self.correct / self.n


class Card(_Section):
    """Everything about a model that its checkpoint doesn't say."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """What the command line and results call the model."""
    task: Literal["image-classification"] = "image-classification"
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
    classes: tuple[str, ...] | None = None
    """Names of the classes by label."""
    architecture: VisionTransformerArchitecture
    """The network, but for its attention."""
    attention: AttentionChoice
    """The mechanism it was trained with, and its settings."""
    input: InputNormalisation
    """Put inside the model."""
    preprocessing: Preprocessing | None = None
    """For image files."""
    checkpoint: CheckpointFile | None = None
    """The weights; a card without describes a model whose weights the user brings."""
    training: Training | None = None
    """How the weights came about."""
    measured: tuple[Measurement, ...] = ()
    """Clean accuracies of these weights with this attention."""

    @field_validator("input", "preprocessing")
    @classmethod
    def _fits_the_architecture(cls, value: Any, info: ValidationInfo) -> Any:
        architecture = info.data.get("architecture")
        if architecture is None:
            return value
        channels, size = architecture.channels, architecture.image_size
        if isinstance(value, InputNormalisation) and not (
            len(value.mean) == len(value.std) == channels
        ):
            raise ValueError(f"mean and std must have one number for each of {channels} channels")
        if isinstance(value, Preprocessing) and (
            (value.image_size, value.channels) != (size, channels)
        ):
            raise ValueError(
                f"image_size and channels must be the architecture's {size} and {channels}"
            )
        return value


def load_card(path: str | Path) -> Card:
    """Read a card.

    Raises
    ------
    UsageError
        If the file can't be read, is not TOML, or is no valid card.
    """
    path = Path(path)
    subject = f"card {path}"
    values = read_toml(path, subject)
    card = validated(Card, values, subject)
    classes, expected = card.classes, card.architecture.num_classes
    if classes is not None and len(classes) != expected:
        raise UsageError(f"{subject}: classes must be {expected} names, got {len(classes)}")
    try:
        resolved_attention(card)
    except UsageError as error:
        raise UsageError(f"{subject}: {error}") from None
    return card


def resolved_attention(card: Card, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return every setting of the card's attention, defaults and `overrides` included.

    Raises
    ------
    UsageError
        If the mechanism or a setting is unknown or out of range.
    """
    mechanism = MECHANISMS[card.attention.mechanism]
    chosen = {**card.attention.settings, **(overrides or {})}
    settings = validated(mechanism.Settings, chosen, f"attention {card.attention.mechanism}")
    return settings.model_dump(mode="json")


def shipped_cards() -> dict[str, Path]:
    """Return the path of every card that ships with the package, by model name, sorted."""
    cards = {path.stem: path for path in shipped("models/cards").glob("*.toml")}
    return dict(sorted(cards.items()))


def list_models() -> list[Card]:
    """Return every card that ships with the package, sorted by name."""
    return [load_card(path) for path in shipped_cards().values()]


def checkpoint_path(card: Card, card_path: Path) -> Path | None:
    """Return where the card's weights lie, or none if the user brings them."""
    if card.checkpoint is None:
        return None
    folder = card_path.resolve().parent
    if folder == shipped("models/cards").resolve():
        folder = shipped("models/checkpoints")
    return folder / card.checkpoint.file


def card_to_toml(card: Card) -> str:
    """Return the text of a card file; `load_card` reads it back to an equal card."""
    return tomli_w.dumps(card.model_dump(mode="json", exclude_none=True))

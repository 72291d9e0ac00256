"""The card of an image classifier."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.models.architecture import AnyArchitecture, AttentionChoice
from robustbench_elliptical.models.cards.base import CardBase, CheckpointFile, Section, Training

__all__ = ["ImageCard", "InputNormalisation", "Measurement"]

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class InputNormalisation(Section):
    """Per-channel normalisation of [0, 1] pixels; it happens inside the model."""

    mean: tuple[_Finite, ...]
    """Subtracted first."""
    std: tuple[_Positive, ...]
    """Divided by then."""


class Measurement(Section):
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


class ImageCard(CardBase):
    """Everything about an image classifier that its checkpoint doesn't say."""

    task: Literal["image-classification"] = "image-classification"
    """What the model does."""
    classes: tuple[str, ...] | None = None
    """Names of the classes by label."""
    architecture: AnyArchitecture
    """The network, but for its attention; its `family` says what it must state."""
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

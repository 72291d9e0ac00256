"""A training recipe as data: one TOML file, shared by every variant trained with it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.core.errors import UnknownNameError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.toml import named_file, read_toml
from robustbench_elliptical.models.architecture import (
    AttentionChoice,
    VisionTransformerArchitecture,
)

__all__ = ["Augmentation", "Normalisation", "Optimisation", "Recipe", "load_recipe", "read_recipe"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Normalisation(_Section):
    """Per-channel normalisation, in [0, 1] pixels."""

    mean: tuple[float, ...]
    """Subtracted first."""
    std: tuple[float, ...]
    """Divided by then."""


class Augmentation(_Section):
    """What is done to a training image."""

    flip: bool = False
    """Mirror left to right, half of the time."""
    crop_padding: int = Field(default=0, ge=0)
    """Pad with zeros by this many pixels, then crop at a random place."""


class Optimisation(_Section):
    """AdamW with a linear warm-up and a cosine to zero, stepped every batch."""

    epochs: int = Field(ge=1)
    """Passes over the training set."""
    batch_size: int = Field(ge=1)
    """Images a step; the last, smaller batch of an epoch is dropped."""
    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup_epochs: float = Field(default=0, ge=0)
    """Length of the warm-up."""
    weight_decay: float = Field(default=0, ge=0)
    """Decoupled weight decay; none on biases, norms, class token and positions, as in DeiT."""
    label_smoothing: float = Field(default=0, ge=0, lt=1)
    """Of the cross-entropy."""
    drop_path: float = Field(default=0, ge=0, lt=1)
    """Stochastic depth rate of the last block."""
    gradient_clip: float | None = Field(default=None, gt=0)
    """Largest gradient norm."""


class Recipe(_Section):
    """How to train a small image classifier."""

    name: str
    """Models trained with it are called NAME-VARIANT."""
    version: int = Field(ge=1)
    """Raised when a change makes new numbers incomparable with old ones."""
    data: Literal["fashion-mnist"]
    """The data set it is made for."""
    architecture: VisionTransformerArchitecture
    """The network, but for its attention."""
    normalisation: Normalisation
    """Put inside the model."""
    augmentation: Augmentation = Augmentation()
    """What is done to a training image."""
    optimisation: Optimisation
    """How the weights are found."""
    attention: dict[str, AttentionChoice]
    """Mechanism and settings of each variant, by the variant's name."""

    def attention_choice(self, variant: str) -> AttentionChoice:
        """Return the attention of one variant; raises `UsageError` if the recipe lacks it."""
        if variant not in self.attention:
            raise UnknownNameError(f"attention of recipe {self.name}", variant, self.attention)
        return self.attention[variant]


def load_recipe(name: str) -> Recipe:
    """Load a shipped recipe by name, or one from a path ending in ``.toml``.

    Raises
    ------
    UsageError
        If it is unknown, unreadable or not valid.
    """
    values, subject = read_recipe(name)
    return validated(Recipe, values, subject)


def read_recipe(name: str) -> tuple[dict[str, Any], str]:
    """Return what a recipe file says, unchecked, and its name for messages.

    Raises
    ------
    UsageError
        If it is unknown, unreadable or not TOML.
    """
    path = named_file(name, "models/recipes", "recipe")
    subject = f"recipe {path}"
    return read_toml(path, subject), subject

"""A language training recipe as data: one TOML file, shared by every variant trained with it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.core.errors import UnknownNameError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.language import DecoderSizes
from robustbench_elliptical.training.recipe import read_recipe

__all__ = ["LanguageOptimisation", "LanguageRecipe", "load_language_recipe"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LanguageOptimisation(_Section):
    """AdamW with a linear warm-up and a cosine to zero, stepped every batch."""

    epochs: int = Field(ge=1)
    """Passes over the training tokens."""
    batch_size: int = Field(ge=1)
    """Windows of the architecture's context_length a step; a smaller last batch is dropped."""
    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup_epochs: float = Field(default=0, ge=0)
    """Length of the warm-up."""
    weight_decay: float = Field(default=0, ge=0)
    """Decoupled weight decay on matrices, word vectors included."""
    gradient_clip: float | None = Field(default=None, gt=0)
    """Largest gradient norm."""


class LanguageRecipe(_Section):
    """How to train a small language model."""

    name: str
    """Models trained with it are called NAME-VARIANT."""
    version: int = Field(ge=1)
    """Raised when a change makes new numbers incomparable with old ones."""
    data: Literal["sotu"]
    """The text it is made for."""
    architecture: DecoderSizes
    """The network, but for its attention and its vocabulary, which the data decides."""
    optimisation: LanguageOptimisation
    """How the weights are found."""
    attention: dict[str, AttentionChoice]
    """Mechanism and settings of each variant, by the variant's name."""

    def attention_choice(self, variant: str) -> AttentionChoice:
        """Return the attention of one variant; raises `UsageError` if the recipe lacks it."""
        if variant not in self.attention:
            raise UnknownNameError(f"attention of recipe {self.name}", variant, self.attention)
        return self.attention[variant]


def load_language_recipe(name: str) -> LanguageRecipe:
    """Load a shipped recipe by name, or one from a path ending in ``.toml``.

    Raises
    ------
    UsageError
        If it is unknown, unreadable or not valid.
    """
    values, subject = read_recipe(name)
    return validated(LanguageRecipe, values, subject)

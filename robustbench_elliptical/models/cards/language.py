"""The card of a language model."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.cards.base import (
    CardBase,
    CheckpointFile,
    Section,
    Training,
    VocabularyFile,
)
from robustbench_elliptical.models.language.architecture import (
    BigramArchitecture,
    DecoderArchitecture,
)

__all__ = ["LanguageCard", "PerplexityMeasurement"]


class PerplexityMeasurement(Section):
    """A measured clean perplexity, to compare a new measurement with."""

    data: str
    """The text, as the command line names it ("sotu")."""
    split: Literal["train", "valid", "test"] = "test"
    """Which part of it."""
    n: int = Field(ge=1)
    """Number of targets."""
    perplexity: float = Field(ge=1, allow_inf_nan=False)
    """exp(sum of losses / n)."""
    window: int = Field(ge=1)
    """Tokens of context at most."""
    stride: int = Field(ge=1)
    """Tokens by which the window moved."""
    context: Literal["document", "stream"] = "document"
    """Whether a document started afresh or after the documents before it."""
    prefix: str | None = None
    """What stood before the first word of a sequence; none: its first token was not scored."""


class LanguageCard(CardBase):
    """Everything about a language model that its checkpoint doesn't say."""

    task: Literal["language-modelling"] = "language-modelling"
    """What the model does."""
    architecture: Annotated[DecoderArchitecture | BigramArchitecture, Field(discriminator="family")]
    """The network, but for its attention."""
    attention: AttentionChoice | None = Field(default=None, validate_default=True)
    """The mechanism a decoder was trained with, and its settings; none for other families."""
    vocabulary: VocabularyFile | None = None
    """The words; a card without describes a model whose vocabulary the user brings."""
    checkpoint: CheckpointFile | None = None
    """The weights; a card without describes a model whose weights the user brings."""
    training: Training | None = None
    """How the weights came about."""
    measured: tuple[PerplexityMeasurement, ...] = ()
    """Clean perplexities of these weights with this attention."""

    @field_validator("architecture", mode="before")
    @classmethod
    def _decoder_unless_stated(cls, value: Any) -> Any:
        return {"family": "decoder", **value} if isinstance(value, dict) else value

    @field_validator("attention")
    @classmethod
    def _fits_the_family(
        cls, value: AttentionChoice | None, info: ValidationInfo
    ) -> AttentionChoice | None:
        architecture = info.data.get("architecture")
        if isinstance(architecture, DecoderArchitecture) and value is None:
            raise ValueError("a decoder's card must state the attention it was trained with")
        if isinstance(architecture, BigramArchitecture) and value is not None:
            raise ValueError("a bigram model has no attention; remove the section")
        return value

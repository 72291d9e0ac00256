"""What a loaded model is, as a record that results store."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.cards import Measurement, PerplexityMeasurement, Task

__all__ = ["LanguageDescription", "ModelDescription"]


class _Description(BaseModel):
    """What the descriptions of every task have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """What results call the model: the card's name and every overridden attention setting."""
    source: str
    """Where the network comes from."""
    task: Task
    """What it does."""
    family: str | None = None
    """Models that differ by their seed alone share it."""
    seed: int | None = None
    """The seed it was trained with."""
    architecture: dict[str, Any] = Field(default_factory=dict)
    """The card's architecture, or the name that another library gives it."""
    attention: str | None = None
    """The attention mechanism; none for networks without a registered one."""
    attention_settings: dict[str, Any] = Field(default_factory=dict)
    """Every setting of the mechanism, defaults and overrides included."""
    attention_overrides: dict[str, Any] = Field(default_factory=dict)
    """The settings in which the model departs from its card."""
    gradient_mode: GradientMode | None = None
    """Whether gradients flow through detached statistics; none where nothing is detached."""
    checkpoint_file: str | None = None
    """Name of the checkpoint file, without its folder."""
    checkpoint_sha256: str | None = None
    """Of that file."""
    weights: str | None = None
    """Which weights of the file: ``model`` or ``model_ema``."""
    weights_sha256: str | None = None
    """Of the weights as loaded: equal weights in different files share it."""


class ModelDescription(_Description):
    """Facts about a classifier and its weights; ``model_dump(mode="json")`` is plain JSON."""

    source: Literal["card", "timm", "python"]
    """A card, a timm name, or a network that Python code handed over."""
    task: Literal["image-classification"] = "image-classification"
    """What it does."""
    measured: tuple[Measurement, ...] = ()
    """Clean accuracies that the card promises of exactly this model; empty if it is another."""
    preprocessing: Preprocessing | None = None
    """How image files become its input."""
    mean: tuple[float, ...]
    """Per channel; subtracted inside the model."""
    std: tuple[float, ...]
    """Per channel; divided by inside the model."""
    input_shape: tuple[int, int, int]
    """(channels, height, width)."""
    num_classes: int
    """Number of logits."""
    classes: tuple[str, ...] | None = None
    """Names of the classes by label."""
    parameters: int
    """Number of trainable and frozen parameters."""

    def claimed_accuracy(self, data: str) -> float | None:
        """Return the clean accuracy that the card promises on a data set, or none.

        Parameters
        ----------
        data
            As the command line names it. A card's ``fashion-mnist`` speaks for
            ``fashion-mnist:DIR`` too, never for another set.
        """
        names = (data, data.partition(":")[0])
        claims = [each.accuracy for each in self.measured if each.data in names]
        return claims[0] if claims else None


class LanguageDescription(_Description):
    """Facts about a language model and its weights; plain JSON as `ModelDescription` is."""

    source: Literal["card", "hf", "python"]
    """A card, a Hugging Face folder, or a network that Python code handed over."""
    task: Literal["language-modelling"] = "language-modelling"
    """What it does."""
    measured: tuple[PerplexityMeasurement, ...] = ()
    """Clean perplexities that the card promises of exactly this model; empty if it is another."""
    vocabulary_file: str | None = None
    """Name of the vocabulary's or tokenizer's file, without its folder."""
    vocabulary_sha256: str | None = None
    """Of that file."""
    vocab_size: int
    """Number of different tokens."""
    context_length: int
    """Tokens of the longest window that the model is made for."""
    parameters: int
    """Number of trainable and frozen parameters."""

    def claimed_measurement(
        self,
        data: str,
        split: str,
        *,
        window: int,
        stride: int,
        context: Literal["document", "stream"] = "document",
    ) -> PerplexityMeasurement | None:
        """Return what the card promises of a measurement made in this way, or none.

        It is about all documents of the part, `n` targets of them.

        Parameters
        ----------
        data
            As the command line names it. A card's ``wikitext`` speaks for ``wikitext:DIR`` too.
        split
            Which part of it.
        window, stride
            In tokens.
        context
            Whether documents start afresh.
        """
        names = (data, data.partition(":")[0])
        way = (split, window, stride, context)
        for each in self.measured:
            same_way = (each.split, each.window, each.stride, each.context) == way
            if same_way and each.data in names:
                return each
        return None

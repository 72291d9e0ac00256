"""What a loaded model is, as a record that results store."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.cards import Measurement

__all__ = ["ModelDescription"]


class ModelDescription(BaseModel):
    """Facts about a model and its weights; ``model_dump(mode="json")`` is plain JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """What results call the model: the card's name and every overridden attention setting."""
    source: Literal["card", "timm", "python"]
    """A card, a timm name, or a network that Python code handed over."""
    task: str = "image-classification"
    """What it does."""
    family: str | None = None
    """Models that differ by their seed alone share it."""
    seed: int | None = None
    """The seed it was trained with."""
    architecture: dict[str, Any] = Field(default_factory=dict)
    """The card's architecture, or timm's name."""
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

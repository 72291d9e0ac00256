"""What the architectures of every family have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn

__all__ = ["ArchitectureBase", "AttentionChoice", "TransformerSizes"]


class AttentionChoice(BaseModel):
    """The attention mechanism of a model and its settings; never guessed from a state dict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: str
    """Registered name of the mechanism."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The mechanism's own settings."""


class ArchitectureBase(BaseModel, ABC):
    """Sizes of a network that classifies square images, and how it is built."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @abstractmethod
    def build(self, mechanism: str, settings: Mapping[str, Any], drop_path: float) -> nn.Module:
        """Return the network, initialised from torch's global generator.

        Parameters
        ----------
        mechanism, settings
            Of its attention.
        drop_path
            Stochastic depth rate in training.

        Raises
        ------
        UsageError
            If the mechanism or one of its settings is unknown or out of range.
        """


class TransformerSizes(ArchitectureBase):
    """Sizes of a transformer whose blocks are all alike."""

    family: str
    """Which builder makes the network."""
    image_size: int = Field(ge=1)
    """Height and width of the input in pixels."""
    patch_size: int = Field(ge=1)
    """Height and width of a patch in pixels; divides the image size."""
    channels: int = Field(default=3, ge=1)
    """Input channels."""
    embed_dim: int = Field(ge=1)
    """Width of a token."""
    depth: int = Field(ge=1)
    """Number of blocks."""
    num_heads: int = Field(ge=1)
    """Attention heads a block; divides embed_dim."""
    mlp_ratio: float = Field(default=4.0, gt=0)
    """Hidden width of the MLP over embed_dim."""
    num_classes: int = Field(ge=2)
    """Number of logits."""

    @model_validator(mode="after")
    def _sizes_divide(self) -> "TransformerSizes":
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size {self.image_size} must be a multiple of patch_size {self.patch_size}"
            )
        if self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim {self.embed_dim} must be a multiple of num_heads {self.num_heads}"
            )
        return self

"""Architectures as data: what a card or a recipe states, and the network built from it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn

from robustbench_elliptical.models.backbones import AttentionVisionTransformer

__all__ = ["AttentionChoice", "VisionTransformerArchitecture", "build_network"]


class VisionTransformerArchitecture(BaseModel):
    """Sizes of a DeiT-style vision transformer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Literal["vision-transformer"] = "vision-transformer"
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
    def _sizes_divide(self) -> "VisionTransformerArchitecture":
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size {self.image_size} must be a multiple of patch_size {self.patch_size}"
            )
        if self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim {self.embed_dim} must be a multiple of num_heads {self.num_heads}"
            )
        return self


class AttentionChoice(BaseModel):
    """The attention mechanism of a model and its settings; never guessed from a state dict."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: str
    """Registered name of the mechanism."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The mechanism's own settings."""


def build_network(
    architecture: VisionTransformerArchitecture,
    attention: AttentionChoice,
    *,
    overrides: Mapping[str, Any] | None = None,
    drop_path: float = 0.0,
) -> nn.Module:
    """Build the network, initialised from torch's global generator.

    Parameters
    ----------
    architecture, attention
        What to build.
    overrides
        Attention settings that replace those of `attention` (controls such as
        ``{"metric": "identity"}``).
    drop_path
        Stochastic depth rate of the last block in training; earlier ones rise linearly to it.

    Raises
    ------
    UsageError
        If the mechanism or one of its settings is unknown or out of range.
    """
    return AttentionVisionTransformer(
        attention.mechanism,
        {**attention.settings, **(overrides or {})},
        img_size=architecture.image_size,
        patch_size=architecture.patch_size,
        in_chans=architecture.channels,
        embed_dim=architecture.embed_dim,
        depth=architecture.depth,
        num_heads=architecture.num_heads,
        mlp_ratio=architecture.mlp_ratio,
        num_classes=architecture.num_classes,
        drop_path_rate=drop_path,
    )

"""The sizes of a fully attentional network."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from torch import nn

from robustbench_elliptical.models.architecture.base import TransformerSizes
from robustbench_elliptical.models.backbones import FullyAttentionalNetwork

__all__ = ["FanArchitecture"]


class FanArchitecture(TransformerSizes):
    """Sizes of FAN-ViT."""

    family: Literal["fan"] = "fan"
    """Which builder makes the network."""
    patch_size: Literal[8, 16] = 16
    """Height and width of a patch in pixels: a convolution halves the image three or four times."""
    embed_dim: int = Field(ge=8, multiple_of=8)
    """Width of a token; the first convolution has an eighth of it (a quarter for patches of 8)."""
    class_blocks: int = Field(default=2, ge=1)
    """Blocks of class attention at the end; their attention is plain."""

    def build(self, mechanism: str, settings: Mapping[str, Any], drop_path: float) -> nn.Module:
        """Return a fully attentional network; see `ArchitectureBase.build`."""
        sizes = self.model_dump(exclude={"family"})
        return FullyAttentionalNetwork(mechanism, settings, **sizes, drop_path=drop_path)

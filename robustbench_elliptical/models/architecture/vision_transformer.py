"""The sizes of DeiT's vision transformers, plain and distilled."""

from collections.abc import Mapping
from typing import Any, Literal

from torch import nn

from robustbench_elliptical.models.architecture.base import TransformerSizes
from robustbench_elliptical.models.backbones import (
    AttentionVisionTransformer,
    DistilledVisionTransformer,
)

__all__ = ["DistilledArchitecture", "VisionTransformerArchitecture"]


class VisionTransformerArchitecture(TransformerSizes):
    """Sizes of a DeiT-style vision transformer."""

    family: Literal["vision-transformer"] = "vision-transformer"
    """Which builder makes the network."""

    def build(self, mechanism: str, settings: Mapping[str, Any], drop_path: float) -> nn.Module:
        """Return a vision transformer; see `ArchitectureBase.build`."""
        return AttentionVisionTransformer(mechanism, settings, **_options(self, drop_path))


class DistilledArchitecture(TransformerSizes):
    """Sizes of a distilled DeiT, which has a second token and head."""

    family: Literal["deit-distilled"] = "deit-distilled"
    """Which builder makes the network."""

    def build(self, mechanism: str, settings: Mapping[str, Any], drop_path: float) -> nn.Module:
        """Return a distilled vision transformer; see `ArchitectureBase.build`."""
        return DistilledVisionTransformer(mechanism, settings, **_options(self, drop_path))


def _options(sizes: TransformerSizes, drop_path: float) -> dict[str, Any]:
    """Return the sizes as timm names them."""
    return {
        "img_size": sizes.image_size,
        "patch_size": sizes.patch_size,
        "in_chans": sizes.channels,
        "embed_dim": sizes.embed_dim,
        "depth": sizes.depth,
        "num_heads": sizes.num_heads,
        "mlp_ratio": sizes.mlp_ratio,
        "num_classes": sizes.num_classes,
        "drop_path_rate": drop_path,
    }

"""The sizes of a robust vision transformer."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from torch import nn

from robustbench_elliptical.models.architecture.base import ArchitectureBase
from robustbench_elliptical.models.backbones import RobustVisionTransformer

__all__ = ["RvtArchitecture"]

Count = Annotated[int, Field(ge=1)]


class RvtArchitecture(ArchitectureBase):
    """Sizes of RVT: stages of blocks, with a strided convolution between two stages."""

    family: Literal["rvt"] = "rvt"
    """Which builder makes the network."""
    image_size: int = Field(ge=16, multiple_of=16)
    """Height and width of the input in pixels; the stem makes a token of 16 x 16 of them."""
    channels: int = Field(default=3, ge=1)
    """Input channels."""
    head_dim: int = Field(default=32, ge=1)
    """Width of a head, the same in every stage."""
    depth: tuple[Count, ...] = Field(min_length=1)
    """Number of blocks of each stage."""
    num_heads: tuple[Count, ...] = Field(min_length=1)
    """Attention heads of each stage; a token is num_heads * head_dim wide. From stage to stage a
    multiple, since the convolution between them keeps channels apart."""
    mlp_ratio: float = Field(default=4.0, gt=0)
    """Hidden width of the feed-forward networks over the token's."""
    attention_blocks: int | None = Field(default=None, ge=1)
    """How many blocks from the first one on have the card's attention, and the others plain softmax
    attention; none: all have the card's."""
    num_classes: int = Field(ge=2)
    """Number of logits."""

    @model_validator(mode="after")
    def _stages_fit(self) -> "RvtArchitecture":
        if len(self.depth) != len(self.num_heads):
            raise ValueError(
                "depth and num_heads must have one number for each stage, got "
                f"{len(self.depth)} and {len(self.num_heads)}"
            )
        for heads, following in zip(self.num_heads, self.num_heads[1:], strict=False):
            if following % heads:
                raise ValueError(
                    f"num_heads {list(self.num_heads)} must grow to a multiple at every stage"
                )
        if self.attention_blocks is not None and self.attention_blocks > sum(self.depth):
            raise ValueError(
                f"attention_blocks {self.attention_blocks} must be at most the "
                f"{sum(self.depth)} blocks that there are"
            )
        return self

    def build(self, mechanism: str, settings: Mapping[str, Any], drop_path: float) -> nn.Module:
        """Return a robust vision transformer; see `ArchitectureBase.build`."""
        sizes = self.model_dump(exclude={"family"})
        return RobustVisionTransformer(mechanism, settings, **sizes, drop_path=drop_path)

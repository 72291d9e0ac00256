"""Neighborhood Attention (Hassani et al., CVPR 2023, arXiv 2204.07143, section 3).

Each query attends to its `kernel` nearest tokens along each axis. At a border the window shifts
inwards, so every query has the same number of keys. With dilation d (Hassani and Shi 2022,
arXiv 2209.15001) it is the same attention on each of the d interleaved subsequences. On images the
neighbourhood is on the grid of patches, the product of two windows along its axes; tokens before
the patches (the class token) attend to all and are attended by all. Under a causal mask it is the
1-D form, the query and the `kernel` - 1 tokens before it, as in the authors' NATTEN: exactly
causal.

No learned relative position bias. Computed as a mask over all pairs.
"""

import math
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
)

__all__ = ["NeighborhoodAttention", "NeighborhoodSettings", "neighbours"]

Length = Annotated[int, Field(ge=1)]


class NeighborhoodSettings(MechanismSettings):
    """Settings of Neighborhood Attention, as a card states them."""

    kernel: int = Field(default=7, ge=1)
    """How many tokens a query attends to along each axis, itself among them; odd."""
    dilation: tuple[Length, ...] = Field(default=(1,), min_length=1)
    """Distance between them; several are used in turn by the blocks (``1+2``: every second block is
    dilated, as in the paper)."""
    layout: Literal["grid", "sequence"] = "grid"
    """What tokens are when there is no causal mask: patches of a square image, row by row, or a
    text. Under a causal mask they are a sequence."""
    prefix_tokens: int = Field(default=1, ge=0)
    """How many tokens come before the patches of a grid."""

    @model_validator(mode="after")
    def _a_middle(self) -> "NeighborhoodSettings":
        if self.kernel % 2 == 0:
            raise ValueError("kernel must be odd, so that a query is in the middle of its window")
        return self


class NeighborhoodAttention(AttentionMechanism):
    """softmax(q k^T / sqrt(head_dim)) v over each query's nearest tokens."""

    capabilities = Capabilities()
    Settings = NeighborhoodSettings

    def __init__(self, layer: LayerShape, settings: NeighborhoodSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        self.dilation = settings.dilation[layer.index % len(settings.dilation)]

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Mask what is no neighbour."""
        scale = inputs.query.shape[-1] ** -0.5
        count, device = inputs.query.shape[-2], inputs.query.device
        mask = self.mask(count, causal=inputs.causal, device=device)
        return Lifted(inputs.query, inputs.key, inputs.value, scale, mask), state

    def mask(
        self, count: int, *, causal: bool = False, device: torch.device | None = None
    ) -> Tensor:
        """Return which keys each of `count` queries attends to, bool, shape (count, count)."""
        kernel, prefix = self.options.kernel, self.options.prefix_tokens
        if causal or self.options.layout == "sequence":
            return neighbours(count, kernel, self.dilation, causal=causal, device=device)
        side = math.isqrt(max(count - prefix, 0))
        if side * side + prefix != count:
            raise UsageError(
                f"attention neighborhood needs a square grid of patches after {prefix} prefix "
                f"tokens, got {count} tokens; set layout=sequence or another prefix_tokens"
            )
        along = neighbours(side, kernel, self.dilation, device=device)
        patches = (along[:, None, :, None] & along[None, :, None, :]).reshape(side**2, side**2)
        mask = torch.ones(count, count, dtype=torch.bool, device=device)
        mask[prefix:, prefix:] = patches
        return mask


def neighbours(
    length: int,
    kernel: int,
    dilation: int = 1,
    *,
    causal: bool = False,
    device: torch.device | None = None,
) -> Tensor:
    """Return which of `length` places on a line each place attends to, bool, (length, length).

    A place attends to `kernel` places of its own residue modulo `dilation`: the nearest ones, or
    with `causal` itself and the ones before. Fewer only where there aren't as many.
    """
    places = torch.arange(length, device=device)
    residue, step = places % dilation, places // dilation
    if causal:
        first = step - (kernel - 1)
        last = step
    else:
        # How many places share the residue, and the start of a window shifted to lie inside.
        available = (length - residue + dilation - 1) // dilation
        first = torch.minimum(step - kernel // 2, available - kernel).clamp(min=0)
        last = first + (kernel - 1)
    inside = (step >= first.unsqueeze(-1)) & (step <= last.unsqueeze(-1))
    return inside & (residue == residue.unsqueeze(-1))


MECHANISMS.add("neighborhood", NeighborhoodAttention)

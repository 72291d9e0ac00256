"""Longformer (Beltagy et al. 2020, arXiv 2004.05150, section 3.1).

Each token attends to a window of `window` / 2 tokens on either side (every `dilation`-th of them)
and to a few global tokens; a global token attends to every token, with query, key and value
projections of its own. Under a causal mask all of these are cut to the past, which is exact.

The paper's global projections start as copies of the local ones. A mechanism doesn't own the local
projections, so the global ones are learned as differences that start at zero: the same functions
and the same start, but the gradient of the global part also reaches the local projections. To load
a Longformer checkpoint, set each difference to global minus local.

Computed as a mask over all pairs: right for a few thousand tokens, without the linear cost of
banded kernels.
"""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
    explicit_attention,
    fused_attention,
)
from robustbench_elliptical.models.attention.shared import offsets, project, split_heads

__all__ = ["LongformerAttention", "LongformerSettings"]


class LongformerSettings(MechanismSettings):
    """Settings of Longformer attention, as a card states them."""

    window: int = Field(default=64, ge=0, multiple_of=2)
    """How many other tokens a token attends to, half of them on either side."""
    dilation: int = Field(default=1, ge=1)
    """Distance between the tokens of a window."""
    global_tokens: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    """Positions that attend to, and are attended by, every token; by default the first, which is
    the class token of a vision transformer. Positions past the end of an input have no effect."""
    global_projections: bool = True
    """Whether global tokens attend with projections of their own (as published)."""


class LongformerAttention(AttentionMechanism):
    """softmax over a sliding window and the global tokens."""

    capabilities = Capabilities()
    Settings = LongformerSettings

    def __init__(self, layer: LayerShape, settings: LongformerSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        self.global_difference: nn.Linear | None = None
        if settings.global_projections and settings.global_tokens:
            width = layer.num_heads * layer.head_dim
            self.global_difference = nn.Linear(layer.dim, 3 * width)
            for parameter in self.global_difference.parameters():
                nn.init.zeros_(parameter)

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Return attention under the mask, which is all unless there are global projections.

        With global projections the rows of the global tokens are replaced afterwards.
        """
        scale = inputs.query.shape[-1] ** -0.5
        return Lifted(inputs.query, inputs.key, inputs.value, scale, self._mask(inputs)), state

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend through the fused kernel, once for the window and once for the global rows."""
        lifted, state = self.lift(inputs, state)
        output = fused_attention(lifted)
        rows = self._global_rows(inputs)
        if rows is not None:
            output = output.index_copy(-2, rows[0], fused_attention(rows[1]))
        return output, state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products; global rows weigh the values of global projections."""
        lifted, state = self.lift(inputs, state)
        output, weights = explicit_attention(lifted)
        rows = self._global_rows(inputs)
        if rows is not None:
            row_output, row_weights = explicit_attention(rows[1])
            output = output.index_copy(-2, rows[0], row_output)
            weights = weights.index_copy(-2, rows[0], row_weights)
        return Explicit(output, weights, state)

    def _places(self, inputs: HeadInputs) -> list[int]:
        count = inputs.query.shape[-2]
        return sorted({place for place in self.options.global_tokens if place < count})

    def _mask(self, inputs: HeadInputs) -> Tensor:
        distance = offsets(inputs.query.shape[-2], inputs.query.device)
        reach = self.options.window // 2 * self.options.dilation
        allowed = (distance.abs() <= reach) & (distance % self.options.dilation == 0)
        is_global = torch.zeros(len(distance), dtype=torch.bool, device=distance.device)
        is_global[self._places(inputs)] = True
        allowed = allowed | is_global | is_global.unsqueeze(-1)
        return allowed & (distance >= 0) if inputs.causal else allowed

    def _global_rows(self, inputs: HeadInputs) -> tuple[Tensor, Lifted] | None:
        """Return the positions of the global rows and their attention."""
        places = self._places(inputs)
        if self.global_difference is None or not places:
            return None
        rows = torch.tensor(places, device=inputs.query.device)
        differences = project(self.global_difference, inputs.tokens).chunk(3, dim=-1)
        query, key, value = (
            local + split_heads(difference, self.layer.num_heads).to(local)
            for local, difference in zip(inputs[:3], differences, strict=True)
        )
        mask = None
        if inputs.causal:
            mask = offsets(query.shape[-2], query.device)[rows] >= 0
        return rows, Lifted(query[:, :, rows], key, value, query.shape[-1] ** -0.5, mask)


MECHANISMS.add("longformer", LongformerAttention)

"""Position-aware attention scaling of RVT (Mao et al., CVPR 2022, arXiv 2105.07926).

softmax((q k^T / sqrt(head_dim)) * sigmoid(P)) v: a learned matrix P of shape (heads, N, N) scales
each logit by a number between 0 and 1. It ties a model to the number of tokens it was built for
(fewer tokens use the first rows and columns). The released code leaves P uninitialised.

This is the attention alone; RVT's convolutional architecture is another thing. A scale below 1
moves a negative logit up: P doesn't only mute pairs.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.shared import (
    UnliftedAttention,
    offsets,
    precise,
    refuse_longer,
)

__all__ = ["PositionAwareAttention", "PositionAwareSettings"]


class PositionAwareSettings(MechanismSettings):
    """Settings of position-aware attention scaling, as a card states them."""

    initial: float = 0.0
    """Every entry of P at the start: 0 halves the logits, 4 is close to plain attention."""
    keys: Literal["raw", "unit"] = "raw"
    """Keys as they are, or scaled to length 1 as in the released robust-KDE comparison code."""


class PositionAwareAttention(UnliftedAttention):
    """softmax((q k^T / sqrt(head_dim)) * sigmoid(P)) v."""

    capabilities = Capabilities(fixed_length=True)
    Settings = PositionAwareSettings

    def __init__(self, layer: LayerShape, settings: PositionAwareSettings) -> None:
        super().__init__(layer, settings)
        self.unit_keys = settings.keys == "unit"
        shape = (layer.num_heads, layer.num_tokens, layer.num_tokens)
        self.position_logits = nn.Parameter(torch.full(shape, settings.initial))

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend; no fused kernel multiplies logits, so this is the explicit path."""
        output, _, state = self.explicit(inputs, state)
        return output, state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products."""
        refuse_longer("rvt_paas", inputs, self.layer.num_tokens)
        query, key, value = inputs.query, inputs.key, inputs.value
        if self.unit_keys:
            length = precise(key).square().sum(-1, keepdim=True).add(1e-12).sqrt()
            key = (precise(key) / length).to(key.dtype)
        count = query.shape[-2]
        scaling = self.position_logits[:, :count, :count].sigmoid().to(query.dtype)
        logits = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5 * scaling
        if inputs.causal:
            logits = logits.masked_fill(offsets(count, query.device) < 0, float("-inf"))
        weights = logits.softmax(dim=-1)
        return Explicit(weights.to(value.dtype) @ value, weights, state)


MECHANISMS.add("rvt_paas", PositionAwareAttention)

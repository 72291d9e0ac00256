"""Output-gated attention (Qiu et al., NeurIPS 2025, arXiv 2505.06708, the gate after attention).

sigmoid(W x_i + b) * (softmax(q k^T / sqrt(head_dim)) v)_i: a gate computed from the query's own
token scales what attention returns, so a head can return nothing without parking its weight on an
attention sink. It is also the output-gate half of Gated Sparse Attention (arXiv 2601.15305), whose
start (bias 0.5, Xavier weights with gain 0.1) is the default here.
"""

from typing import Literal

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
from robustbench_elliptical.models.attention.shared import project, split_heads

__all__ = ["GatedAttention", "GatedSettings"]


class GatedSettings(MechanismSettings):
    """Settings of output-gated attention, as a card states them."""

    granularity: Literal["elementwise", "headwise"] = "elementwise"
    """One gate for each coordinate of a head's output, or one for the head."""
    initial_bias: float = 0.5
    """Bias of the gates at the start."""
    initial_gain: float = Field(default=0.1, ge=0)
    """Gain of the Xavier initialisation of their weights."""


class GatedAttention(AttentionMechanism):
    """sigmoid(W x + b) * (softmax(q k^T / sqrt(head_dim)) v)."""

    capabilities = Capabilities()
    Settings = GatedSettings

    def __init__(self, layer: LayerShape, settings: GatedSettings) -> None:
        super().__init__(layer, settings)
        per_head = 1 if settings.granularity == "headwise" else layer.head_dim
        self.gate = nn.Linear(layer.dim, layer.num_heads * per_head)
        nn.init.xavier_uniform_(self.gate.weight, gain=settings.initial_gain)
        nn.init.constant_(self.gate.bias, settings.initial_bias)

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Return the plain attention that is gated afterwards."""
        scale = inputs.query.shape[-1] ** -0.5
        return Lifted(inputs.query, inputs.key, inputs.value, scale, causal=inputs.causal), state

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend through the fused kernel, then gate."""
        lifted, state = self.lift(inputs, state)
        return self._gates(inputs) * fused_attention(lifted), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products; the weights are those before the gate."""
        lifted, state = self.lift(inputs, state)
        output, weights = explicit_attention(lifted)
        return Explicit(self._gates(inputs) * output, weights, state)

    def _gates(self, inputs: HeadInputs) -> Tensor:
        gates = project(self.gate, inputs.tokens).sigmoid().to(inputs.value.dtype)
        return split_heads(gates, self.layer.num_heads)


MECHANISMS.add("gated", GatedAttention)

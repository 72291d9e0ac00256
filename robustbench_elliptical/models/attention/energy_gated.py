"""Energy-gated attention (arXiv 2605.26355); experimental, partly inferred.

out_i = sum_j A_ij g_j v_j with g_j = sigmoid(beta (e_j - tau)): each key token has an energy e_j, a
learned linear function of it, and tokens below the threshold tau are muted. The abstract gives the
single linear projection and a learned threshold of about 0.35; the exact energy, its normalisation
and the start of beta could not be read, so here e = w . x of each head, without normalisation over
the sequence (which would leak under a causal mask), beta = exp of a learned number.
"""

import math

import torch
import torch.nn.functional as functional
from pydantic import Field
from torch import Tensor, nn

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
from robustbench_elliptical.models.attention.shared import offsets, precise, project

__all__ = ["EnergyGatedAttention", "EnergyGatedSettings"]


class EnergyGatedSettings(MechanismSettings):
    """Settings of energy-gated attention, as a card states them."""

    renormalise: bool = False
    """Whether the gated weights are divided by their sum (the gate then acts on the logits, as
    log g), so that every row sums to 1; the published form doesn't."""
    initial_threshold: float = 0.35
    """The threshold tau of every head at the start."""
    initial_sharpness: float = Field(default=1.0, gt=0)
    """The sharpness beta of every head at the start."""


class EnergyGatedAttention(AttentionMechanism):
    """softmax(q k^T / sqrt(head_dim)) (g v), with a gate g of each key token and head."""

    capabilities = Capabilities()
    Settings = EnergyGatedSettings

    def __init__(self, layer: LayerShape, settings: EnergyGatedSettings) -> None:
        super().__init__(layer, settings)
        self.renormalise = settings.renormalise
        self.energy = nn.Linear(layer.dim, layer.num_heads, bias=False)
        self.threshold = nn.Parameter(torch.full((layer.num_heads,), settings.initial_threshold))
        sharpness = math.log(settings.initial_sharpness)
        self.log_sharpness = nn.Parameter(torch.full((layer.num_heads,), sharpness))

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Gate the values, or add the gate's logarithm to the logits."""
        query, key, value = inputs.query, inputs.key, inputs.value
        scale = query.shape[-1] ** -0.5
        gate_logits = self.gate_logits(inputs.tokens)
        if not self.renormalise:
            gates = gate_logits.sigmoid().unsqueeze(-1).to(value.dtype)
            return Lifted(query, key, gates * value, scale, causal=inputs.causal), state
        bias = functional.logsigmoid(gate_logits).unsqueeze(-2)
        if inputs.causal:
            later = offsets(query.shape[-2], query.device) < 0
            bias = bias.expand(-1, -1, len(later), -1).masked_fill(later, float("-inf"))
        return Lifted(query, key, value, scale, bias.to(query.dtype)), state

    def gate_logits(self, tokens: Tensor) -> Tensor:
        """Return beta (e - tau), shape (batch, heads, tokens), of tokens (batch, tokens, dim)."""
        energy = precise(project(self.energy, tokens)).transpose(1, 2)
        threshold, log_sharpness = (
            each.unsqueeze(-1).to(energy.dtype) for each in (self.threshold, self.log_sharpness)
        )
        return log_sharpness.exp() * (energy - threshold)


MECHANISMS.add("energy_gated", EnergyGatedAttention)

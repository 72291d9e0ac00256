"""The Forgetting Transformer, FoX (Lin et al., ICLR 2025, arXiv 2503.02130, section 3).

f_t = sigmoid(w . x_t + b) of each head and token, and
logits_ij = q_i . k_j / sqrt(head_dim) + sum of log f_l over l = j+1..i, for j up to i: what lies
back is forgotten as fast as the tokens in between say. With c the running sum of log f the added
term is c_i - c_j. A constant f is ALiBi with slope -log f; f = 1 is plain causal attention.

The running sum and the differences are in float32 at least. Only the attention of the paper is
here, not its "Pro" block. Without a causal mask the paper has no form; here each side then forgets
with its distance, -abs(c_i - c_j), which is this project's extension.
"""

import torch
import torch.nn.functional as functional
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

__all__ = ["ForgettingAttention", "ForgettingSettings"]


class ForgettingSettings(MechanismSettings):
    """Settings of the Forgetting Transformer's attention, as a card states them."""

    initial_bias: float = 0.0
    """Bias of the forget gates at the start (0 as published: half is kept a token)."""


class ForgettingAttention(AttentionMechanism):
    """softmax(q k^T / sqrt(head_dim) + c_i - c_j) v, c the running sum of log forget gates."""

    capabilities = Capabilities()
    Settings = ForgettingSettings

    def __init__(self, layer: LayerShape, settings: ForgettingSettings) -> None:
        super().__init__(layer, settings)
        self.forget_gate = nn.Linear(layer.dim, layer.num_heads)
        nn.init.normal_(self.forget_gate.weight, std=0.02)
        nn.init.constant_(self.forget_gate.bias, settings.initial_bias)

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Add the forgetting to the logits."""
        forgetting = self.forgetting(inputs.tokens, causal=inputs.causal).to(inputs.query.dtype)
        scale = inputs.query.shape[-1] ** -0.5
        return Lifted(inputs.query, inputs.key, inputs.value, scale, forgetting), state

    def forgetting(self, tokens: Tensor, *, causal: bool) -> Tensor:
        """Return what is added to the logits, shape (batch, heads, tokens, tokens).

        Parameters
        ----------
        tokens
            The block's normalised input, shape (batch, tokens, dim).
        causal
            Whether later keys get -inf.
        """
        logits = precise(project(self.forget_gate, tokens)).transpose(1, 2)
        memory = functional.logsigmoid(logits).cumsum(dim=-1)
        since = memory.unsqueeze(-1) - memory.unsqueeze(-2)
        later = offsets(tokens.shape[1], tokens.device) < 0
        if causal:
            return since.masked_fill(later, float("-inf"))
        return torch.where(later, -since, since)


MECHANISMS.add("forgetting", ForgettingAttention)

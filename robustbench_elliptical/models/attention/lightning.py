"""Lightning Attention-2, linear attention with decay (Qin et al. 2024, arXiv 2401.04658).

o_i = sum over j up to i of lambda^(i-j) (q_i . k_j) v_j, with one lambda = exp(-slope) a head and
no softmax. Equal forms: the product with a masked matrix; a recurrence, S <- lambda S + k v^T; and
blocks of tokens (the product inside a block, the state S between blocks), which is what `forward`
computes, at a cost linear in the number of tokens.

Around it, as in the authors' layer: SiLU on queries, keys and values, a layer norm of the output
over all heads (it is unnormalised otherwise) and a low-rank sigmoid gate. Slopes are those of
ALiBi, 2^(-8 h / heads) for heads h = 1.., times 1 - layer / (layers - 1) + 1e-5; ALiBi interpolates
where the number of heads is no power of 2, this doesn't. The paper is causal only; without a causal
mask this is the sum over both sides, lambda^abs(i-j), which is an extension.
"""

import torch
import torch.nn.functional as functional
from pydantic import Field
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
    merge_heads,
    offsets,
    precise,
    project,
    split_heads,
)

__all__ = ["LightningAttention", "LightningSettings", "decay_slopes", "decayed_attention"]


class LightningSettings(MechanismSettings):
    """Settings of Lightning attention, as a card states them."""

    block: int = Field(default=64, ge=1)
    """Tokens of a block; the result doesn't depend on it."""
    decay: bool = True
    """Whether older tokens fade; else lambda = 1, plain linear attention."""
    activation: bool = True
    """Whether queries, keys and values pass through SiLU."""
    output_norm: bool = True
    """Whether the output is layer-normalised over all heads."""
    output_gate: bool = True
    """Whether a sigmoid gate of rank head_dim scales the output."""


class LightningAttention(UnliftedAttention):
    """gate * norm(sum over j of lambda^(i-j) (q_i . k_j) v_j), in float32 at least."""

    capabilities = Capabilities(row_stochastic=False)
    Settings = LightningSettings

    def __init__(self, layer: LayerShape, settings: LightningSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        width = layer.num_heads * layer.head_dim
        self.slopes = decay_slopes(layer) if settings.decay else (0.0,) * layer.num_heads
        self.layer_norm = nn.LayerNorm(width) if settings.output_norm else None
        self.gate_down: nn.Linear | None = None
        self.gate_up: nn.Linear | None = None
        if settings.output_gate:
            self.gate_down = nn.Linear(layer.dim, layer.head_dim, bias=False)
            self.gate_up = nn.Linear(layer.head_dim, width, bias=False)

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend block by block."""
        query, key, value = self._features(inputs)
        with torch.autocast(device_type=query.device.type, enabled=False):
            slopes = torch.tensor(self.slopes, dtype=query.dtype, device=query.device)
            output = decayed_attention(query, key, value, slopes, self.options.block)
            if not inputs.causal:
                later = decayed_attention(
                    query.flip(-2), key.flip(-2), value.flip(-2), slopes, self.options.block
                ).flip(-2)
                output = output + later - (query * key).sum(dim=-1, keepdim=True) * value
        return self._finish(output, inputs), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with the masked matrix, which is returned as weights.

        They may be negative and don't sum to 1; SiLU of the values is what they weigh, and the norm
        and the gate come after.
        """
        query, key, value = self._features(inputs)
        with torch.autocast(device_type=query.device.type, enabled=False):
            slopes = torch.tensor(self.slopes, dtype=query.dtype, device=query.device)
            distance = offsets(query.shape[-2], query.device)
            decay = torch.exp(-slopes[:, None, None] * distance.abs())
            weights = query @ key.transpose(-2, -1) * decay
            if inputs.causal:
                weights = weights.masked_fill(distance < 0, 0.0)
            output = weights @ value
        return Explicit(self._finish(output, inputs), weights.to(inputs.value.dtype), state)

    def _features(self, inputs: HeadInputs) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (precise(each) for each in inputs[:3])
        if not self.options.activation:
            return query, key, value
        return functional.silu(query), functional.silu(key), functional.silu(value)

    def _finish(self, output: Tensor, inputs: HeadInputs) -> Tensor:
        """Normalise over the heads together and gate."""
        merged = merge_heads(output)
        if self.layer_norm is not None:
            merged = functional.layer_norm(
                merged,
                self.layer_norm.normalized_shape,
                self.layer_norm.weight.to(merged.dtype),
                self.layer_norm.bias.to(merged.dtype),
                self.layer_norm.eps,
            )
        if self.gate_down is not None and self.gate_up is not None:
            gate = project(self.gate_up, project(self.gate_down, inputs.tokens)).sigmoid()
            merged = merged * gate
        return split_heads(merged, self.layer.num_heads).to(inputs.value.dtype)


def decay_slopes(layer: LayerShape) -> tuple[float, ...]:
    """Return -log(lambda) of each head: ALiBi's slopes, smaller in later blocks."""
    depth = 1 - layer.index / max(layer.depth - 1, 1) + 1e-5
    heads = range(1, layer.num_heads + 1)
    return tuple(depth * 2.0 ** (-8 * head / layer.num_heads) for head in heads)


def decayed_attention(
    query: Tensor, key: Tensor, value: Tensor, slopes: Tensor, block: int
) -> Tensor:
    """Return sum over j up to i of exp(-slope (i - j)) (q_i . k_j) v_j, block by block.

    Parameters
    ----------
    query, key, value
        Shape (batch, heads, tokens, head_dim).
    slopes
        Shape (heads,), each at least 0.
    block
        Tokens of a block; sets the cost only.
    """
    state = key.new_zeros((*key.shape[:2], key.shape[-1], value.shape[-1]))
    rates = slopes[:, None, None]
    outputs = []
    for start in range(0, query.shape[-2], block):
        q, k, v = (each[:, :, start : start + block] for each in (query, key, value))
        count = q.shape[-2]
        distance = offsets(count, q.device)
        # The distance is cut at 0 before the exponential, so that no masked entry overflows.
        decay = torch.exp(-rates * distance.clamp(min=0)).masked_fill(distance < 0, 0.0)
        place = torch.arange(count, device=q.device).unsqueeze(-1)
        inside = (q @ k.transpose(-2, -1) * decay) @ v
        before = (q * torch.exp(-rates * (place + 1))) @ state
        outputs.append(inside + before)
        fading = k * torch.exp(-rates * (count - 1 - place))
        state = torch.exp(-rates * count) * state + fading.transpose(-2, -1) @ v
    return torch.cat(outputs, dim=-2)


MECHANISMS.add("lightning", LightningAttention)

"""Linformer (Wang et al. 2020, arXiv 2006.04768, equation 7).

softmax(q (E k)^T / sqrt(head_dim)) (F v): learned matrices E and F of shape (slots, tokens) mix the
tokens' keys and values down to a few slots, so the cost is linear in the number of tokens. Every
slot mixes all tokens, the future ones too: there is no causal form, and the matrices tie a model to
the number of tokens that it was built for (fewer tokens use the first columns).
"""

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
)
from robustbench_elliptical.models.attention.shared import refuse_causal, refuse_longer

__all__ = ["LinformerAttention", "LinformerSettings"]


class LinformerSettings(MechanismSettings):
    """Settings of Linformer, as a card states them."""

    slots: int = Field(default=256, ge=1)
    """Rows of E and F; at most the number of tokens is used."""
    share_heads: bool = False
    """Whether the heads of a block share E and F."""
    share_key_value: bool = False
    """Whether F is E (as in the released Long Range Arena models, which also share them between
    blocks; here each block has its own)."""
    initial_std: float = Field(default=0.02, gt=0)
    """Standard deviation of the matrices at the start."""


class LinformerAttention(AttentionMechanism):
    """softmax(q (E k)^T / sqrt(head_dim)) (F v), with E and F of shape (heads or 1, slots, N)."""

    capabilities = Capabilities(causal="no", fixed_length=True, row_stochastic=False)
    Settings = LinformerSettings

    def __init__(self, layer: LayerShape, settings: LinformerSettings) -> None:
        super().__init__(layer, settings)
        slots = min(settings.slots, layer.num_tokens)
        shape = (1 if settings.share_heads else layer.num_heads, slots, layer.num_tokens)
        self.key_projection = nn.Parameter(torch.empty(shape).normal_(std=settings.initial_std))
        self.value_projection: nn.Parameter | None = None
        if not settings.share_key_value:
            self.value_projection = nn.Parameter(
                torch.empty(shape).normal_(std=settings.initial_std)
            )

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Mix the keys and the values down to the slots."""
        refuse_causal("linformer", inputs)
        refuse_longer("linformer", inputs, self.layer.num_tokens)
        keys, values = self._mixers(inputs)
        scale = inputs.query.shape[-1] ** -0.5
        return Lifted(inputs.query, keys @ inputs.key, values @ inputs.value, scale), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Return as weights what each token's value counts: softmax over the slots, times F.

        The softmax rows over the slots sum to 1; these rows, over tokens, sum to 1 only if each
        row of F does.
        """
        lifted, state = self.lift(inputs, state)
        output, slot_weights = explicit_attention(lifted)
        _, values = self._mixers(inputs)
        return Explicit(output, slot_weights @ values, state)

    def _mixers(self, inputs: HeadInputs) -> tuple[Tensor, Tensor]:
        count = inputs.key.shape[-2]
        keys = self.key_projection[..., :count].to(inputs.key.dtype)
        if self.value_projection is None:
            return keys, keys
        return keys, self.value_projection[..., :count].to(inputs.value.dtype)


MECHANISMS.add("linformer", LinformerAttention)

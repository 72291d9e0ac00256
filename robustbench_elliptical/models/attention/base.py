"""What an attention mechanism is: a plug-in between a block's projections and its output.

Most mechanisms are ordinary scaled dot-product attention on transformed tensors. Such a plug-in
writes one method, `AttentionMechanism.lift`; the fused path and the explicit path (which also
returns the attention weights, for reports) follow from it. A mechanism that is no such transform
overrides `forward` and `explicit`.

What one block hands to the next (Elliptical Attention needs the previous block's values) is a
plain dictionary of tensors that travels as an argument and a return value. Nothing is kept on the
module, so forwards that interleave, fail half-way, run in threads, are replayed by activation
checkpointing or are compiled can't mix their states.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as functional
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from robustbench_elliptical.core.registry import Registry

__all__ = [
    "MECHANISMS",
    "AttentionMechanism",
    "Capabilities",
    "Explicit",
    "Flag",
    "GradientMode",
    "HeadInputs",
    "LayerShape",
    "Lifted",
    "MechanismSettings",
    "State",
    "explicit_attention",
    "fused_attention",
]

State = dict[str, Tensor]
GradientMode = Literal["detached", "through"]
Flag = bool | Literal["with-settings"]


@dataclass(frozen=True)
class Capabilities:
    """What a mechanism can do and where it is dangerous.

    A class states a summary over its settings, in which a flag that they decide is
    ``"with-settings"``. `AttentionMechanism.capabilities_for` decides every flag.
    """

    causal: Literal["exact", "leaks", "no", "with-settings"] = "exact"
    """exact: a causal mask makes every output independent of later tokens; leaks: it is taken, but
    later tokens reach earlier outputs, as published; no: there is no causal form."""
    fixed_length: Flag = False
    """Whether it takes no more tokens than it was built for, having parameters for each."""
    stochastic: Flag = False
    """Whether it draws at random for each sample, in evaluation too. The draw follows from a seed
    and the sample's key: under one key two evaluations agree, under another they differ."""
    batch_coupled: Flag = False
    """Whether a sample's output depends on the other samples of its batch. Only settings that
    restore the behaviour of released code do that."""
    detached_statistics: Flag = False
    """Whether gradients can skip a statistic of the input; `gradient_mode` says if they do."""
    auxiliary_loss: Flag = False
    """Whether training adds a loss of the mechanism's own."""
    row_stochastic: Flag = True
    """Whether the explicit path's weights are distributions over the keys: none negative, rows sum
    to 1."""


@dataclass(frozen=True)
class LayerShape:
    """Where a mechanism sits: the sizes of its block and its place in the stack."""

    dim: int
    num_heads: int
    head_dim: int
    index: int
    """Position of the block, from 0."""
    depth: int
    """Number of blocks."""
    num_tokens: int
    """Number of tokens that the backbone was built for."""


class HeadInputs(NamedTuple):
    """What a block hands to its mechanism."""

    query: Tensor
    """Shape (batch, heads, tokens, head_dim)."""
    key: Tensor
    """Shape (batch, heads, tokens, head_dim)."""
    value: Tensor
    """Shape (batch, heads, tokens, head_dim)."""
    tokens: Tensor
    """The block's normalised input, shape (batch, tokens, dim)."""
    causal: bool = False
    """Whether token i may only attend to tokens up to i."""
    sample_keys: Tensor | None = None
    """One int64 key a sample, shape (batch,), for randomness that belongs to the sample."""


class Lifted(NamedTuple):
    """Scaled dot-product attention on transformed tensors: softmax(scale q k^T + mask) v."""

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    mask: Tensor | None = None
    """Boolean (True = may attend) or additive; broadcasts to (batch, heads, queries, keys)."""
    causal: bool = False


class Explicit(NamedTuple):
    """The explicit path's result."""

    output: Tensor
    """Shape (batch, heads, tokens, head_dim)."""
    weights: Tensor
    """Attention weights, shape (batch, heads, queries, keys)."""
    state: State
    """What the next block receives."""


class MechanismSettings(BaseModel):
    """Settings of a mechanism as a card states them; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def decide(self, summary: Capabilities) -> Capabilities:
        """Return a mechanism's summary with every flag decided that depends on these settings."""
        return summary


class AttentionMechanism(nn.Module, ABC):
    """One attention mechanism in one block.

    Parameters
    ----------
    layer
        The block's sizes and place.
    settings
        An instance of the class's `Settings`.
    """

    capabilities: ClassVar[Capabilities]
    """The flags over all settings."""
    Settings: ClassVar[type[MechanismSettings]]

    def __init__(self, layer: LayerShape, settings: MechanismSettings) -> None:
        super().__init__()
        self.layer = layer
        self.settings = settings
        self.gradient_mode: GradientMode = "detached"

    @classmethod
    def capabilities_for(cls, settings: MechanismSettings) -> Capabilities:
        """Return the flags under given settings, an instance of `Settings`; all are decided."""
        return settings.decide(cls.capabilities)

    @property
    def flags(self) -> Capabilities:
        """The flags under this mechanism's settings."""
        return self.capabilities_for(self.settings)

    @property
    def skips_gradients(self) -> bool:
        """Whether gradients of the input now skip a statistic of it."""
        return bool(self.flags.detached_statistics) and self.gradient_mode == "detached"

    @abstractmethod
    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Return the transformed attention and the state for the next block."""

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend through the fused kernel.

        Returns the output, shape (batch, heads, tokens, head_dim), and the next block's state.
        """
        lifted, state = self.lift(inputs, state)
        return fused_attention(lifted), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products; equals `forward` and also returns the weights."""
        lifted, state = self.lift(inputs, state)
        output, weights = explicit_attention(lifted)
        return Explicit(output, weights, state)


def fused_attention(lifted: Lifted) -> Tensor:
    """Return the attention output by torch's fused kernel."""
    return functional.scaled_dot_product_attention(
        lifted.query,
        lifted.key,
        lifted.value,
        attn_mask=lifted.mask,
        is_causal=lifted.causal,
        scale=lifted.scale,
    )


def explicit_attention(lifted: Lifted) -> tuple[Tensor, Tensor]:
    """Return the attention output and its weights by plain matrix products."""
    logits = lifted.query @ lifted.key.transpose(-2, -1) * lifted.scale
    if lifted.causal:
        allowed = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
        logits = logits.masked_fill(~allowed, float("-inf"))
    if lifted.mask is not None and lifted.mask.dtype == torch.bool:
        logits = logits.masked_fill(~lifted.mask, float("-inf"))
    elif lifted.mask is not None:
        logits = logits + lifted.mask
    weights = logits.softmax(dim=-1)
    return weights @ lifted.value, weights


MECHANISMS: Registry[type[AttentionMechanism]] = Registry("attention mechanism")

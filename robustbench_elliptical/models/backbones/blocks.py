"""The parts of a block that the networks share: projections around a mechanism, and its steps."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from robustbench_elliptical.models.attention import AttentionMechanism, HeadInputs, State
from robustbench_elliptical.models.backbones.network import BlockTrace

__all__ = ["StateBlock", "TokenMixing"]


class TokenMixing(nn.Module, ABC):
    """Projections to heads, a registered mechanism, and the projection back."""

    mechanism: AttentionMechanism
    proj: nn.Module
    proj_drop: nn.Module

    @abstractmethod
    def head_inputs(self, tokens: Tensor, sample_keys: Tensor | None) -> HeadInputs:
        """Project tokens of shape (batch, tokens, dim) to queries, keys and values."""

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Project (batch, heads, tokens, head_dim) back to (batch, tokens, dim)."""
        merged: Tensor = self.proj_drop(self.proj(heads.transpose(1, 2).flatten(2)))
        return merged

    def forward(
        self, tokens: Tensor, state: State, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Attend; returns tokens of the same shape and the next block's state."""
        heads, state = self.mechanism(self.head_inputs(tokens, sample_keys), state)
        return self.merge_heads(heads), state


class StateBlock(nn.Module, ABC):
    """A pre-norm block that passes the attention state along."""

    attn: TokenMixing
    norm1: nn.Module

    def forward(
        self, tokens: Tensor, state: State, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return tokens of the same shape and the next block's state."""
        attended, state = self.attn(self.norm1(tokens), state, sample_keys)
        return self.residuals(tokens, attended), state

    def trace(self, tokens: Tensor, state: State, sample_keys: Tensor | None = None) -> BlockTrace:
        """Do the same through the explicit path and keep what happened."""
        inputs = self.attn.head_inputs(self.norm1(tokens), sample_keys)
        heads, weights, state = self.attn.mechanism.explicit(inputs, state)
        return BlockTrace(weights, self.residuals(tokens, self.attn.merge_heads(heads)), state)

    @abstractmethod
    def residuals(self, tokens: Tensor, attended: Tensor) -> Tensor:
        """Add what attention and the network after it give to the tokens, in their shape."""

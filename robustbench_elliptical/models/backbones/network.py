"""What every network of this folder offers, and what it says about its blocks."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor

from robustbench_elliptical.models.attention import State

__all__ = ["AttentionNetwork", "BlockTrace"]


class BlockTrace(NamedTuple):
    """What one block did, for reports."""

    weights: Tensor
    """Attention weights, shape (batch, heads, queries, keys)."""
    tokens: Tensor
    """Tokens after the block, shape (batch, tokens, dim)."""
    state: State
    """What the block handed on; Elliptical blocks put their ``metric`` here."""


class AttentionNetwork(ABC):
    """An image classifier whose attention is a registered mechanism."""

    num_prefix_tokens: int
    """Tokens before the patches, the class token first; 0 if the blocks see patches only."""

    @property
    @abstractmethod
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns of patches that enter the first block."""

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """Return the tokens that enter the first block, shape (batch, tokens, dim)."""

    @abstractmethod
    def forward(self, images: Tensor, sample_keys: Tensor | None = None) -> Tensor:
        """Return logits, shape (batch, classes), of normalised images (batch, channels, h, w)."""

    @abstractmethod
    def trace(
        self, images: Tensor, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, list[BlockTrace]]:
        """Return the logits by the explicit path and what each block did."""

"""Words and positions as vectors, under the parameter names of Transformer-XL."""

import math
from typing import cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

__all__ = ["SinusoidalPositions", "WordEmbedding"]


class WordEmbedding(nn.Module):
    """Word vectors times sqrt(d_model).

    Parameters
    ----------
    vocab_size
        Number of words.
    d_model
        Width of a vector.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.emb_layers = nn.ModuleList([nn.Embedding(vocab_size, d_model)])
        self.scale = math.sqrt(d_model)

    @property
    def weight(self) -> nn.Parameter:
        """The unscaled vectors, shape (vocab_size, d_model)."""
        return cast(nn.Parameter, self.emb_layers[0].weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scaled vectors, shape (..., d_model), of int64 tokens."""
        return functional.embedding(tokens, self.weight) * self.scale


class SinusoidalPositions(nn.Module):
    """Sines, then cosines of the distance to the last token of the window, which has position 0.

    Parameters
    ----------
    d_model
        Width of a vector; even.
    """

    inv_freq: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        exponents = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
        self.register_buffer("inv_freq", 1 / 10000**exponents)

    def forward(self, length: int) -> Tensor:
        """Return the vectors of a window from its first token on, shape (length, d_model)."""
        distances = torch.arange(
            length - 1, -1, -1, device=self.inv_freq.device, dtype=self.inv_freq.dtype
        )
        angles = torch.outer(distances, self.inv_freq)
        return torch.cat((angles.sin(), angles.cos()), dim=-1)

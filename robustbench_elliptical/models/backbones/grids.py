"""Tokens as a square grid of patches, row by row, and back."""

import math

from torch import Tensor

__all__ = ["from_grid", "to_grid"]


def to_grid(tokens: Tensor) -> Tensor:
    """Return tokens (batch, side * side, dim) as (batch, dim, side, side)."""
    side = math.isqrt(tokens.shape[1])
    return tokens.transpose(1, 2).reshape(len(tokens), -1, side, side)


def from_grid(grid: Tensor) -> Tensor:
    """Return (batch, dim, rows, columns) as tokens (batch, rows * columns, dim)."""
    return grid.flatten(2).transpose(1, 2)

"""FourierFormer (Nguyen et al., NeurIPS 2022, arXiv 2206.00206).

Attention by the Fourier integral density estimator:
K_ij = prod_d (sin(R_d (q_id - k_jd)) / (R_d (q_id - k_jd)))^p with p = 4, and the output is
sum_j K_ij v_j / sum_j K_ij. R is learned, one number a layer or one a coordinate, shared by heads.
An even p keeps K from being negative. Small R is a Gaussian kernel with coefficient p R^2 / 6.

Computed through logarithms, a coordinate at a time and in float32 at least: the product of 64
factors is far below what a float32 holds. The released code adds 1e-6 to sum_j K_ij, against which
it vanishes unless queries and keys are small: every output is then about 0. `eps_mode` restores
that; rows then sum to less than 1. Its kernel also reads a one-element R beyond its end.

|sin(u) / u| is held above 1e-12, where its logarithm has no gradient.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.autograd import Function

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.shared import UnliftedAttention, offsets, precise

__all__ = ["FourierAttention", "FourierSettings", "log_fourier_kernel"]

_LEAST_FACTOR = 1e-12
_LEAST_ANGLE = 1e-20
_RELEASED_EPS = 1e-6
_SERIES_TO = 0.25
_SLOPE_THERE = 1 / _SERIES_TO - 1 / math.tan(_SERIES_TO)
# 1 / u - cot(u) = u / 3 + u^3 / 45 + ..., |B_2n| (2 u)^2n / ((2n)! u) with Bernoulli numbers B.
_SERIES = (
    1 / 3,
    1 / 45,
    2 / 945,
    1 / 4725,
    2 / 93555,
    1382 / 638512875,
    4 / 18243225,
    3617 / 162820783125,
)


class FourierSettings(MechanismSettings):
    """Settings of FourierFormer's attention, as a card states them."""

    radius: Literal["scalar", "vector"] = "scalar"
    """Whether R is one number a layer or one a coordinate."""
    initial_radius: float = Field(default=1.0, gt=0)
    """R at the start (1 for images, 2 for language in the released code)."""
    power: int = Field(default=4, ge=2)
    """p, even."""
    eps_mode: Literal["none", "released"] = "none"
    """Whether 1e-6 is added to the sum of K, as in the released code."""

    @field_validator("power")
    @classmethod
    def _is_even(cls, power: int) -> int:
        if power % 2:
            raise ValueError(f"must be even, got {power}")
        return power

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say that weights sum to less than 1 where something is added to the sum of K."""
        return replace(summary, row_stochastic=self.eps_mode == "none")


class FourierAttention(UnliftedAttention):
    """sum_j K_ij v_j / sum_j K_ij with a product of sinc powers for K."""

    capabilities = Capabilities(row_stochastic="with-settings")
    Settings = FourierSettings

    def __init__(self, layer: LayerShape, settings: FourierSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        size = layer.head_dim if settings.radius == "vector" else 1
        self.radius = nn.Parameter(torch.full((size,), settings.initial_radius))

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend; no fused kernel computes these scores, so this is the explicit path."""
        output, _, state = self.explicit(inputs, state)
        return output, state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products."""
        query, key, value = (precise(each) for each in inputs[:3])
        with torch.autocast(device_type=query.device.type, enabled=False):
            logits = log_fourier_kernel(query, key, self.radius.to(query.dtype), self.options.power)
            if inputs.causal:
                later = offsets(logits.shape[-1], logits.device) < 0
                logits = logits.masked_fill(later, float("-inf"))
            if self.options.eps_mode == "released":
                kernel = logits.exp()
                weights = kernel / (kernel.sum(dim=-1, keepdim=True) + _RELEASED_EPS)
            else:
                weights = logits.softmax(dim=-1)
            output = weights @ value
        dtype = inputs.value.dtype
        return Explicit(output.to(dtype), weights.to(dtype), state)


def log_fourier_kernel(query: Tensor, key: Tensor, radius: Tensor, power: int = 4) -> Tensor:
    """Return log K, shape (..., queries, keys).

    Memory, that kept for the gradient included, is of a few such matrices: no more for more
    coordinates.

    Parameters
    ----------
    query, key
        Shape (..., tokens, head_dim), float32 or float64.
    radius
        Shape (1,) or (head_dim,).
    power
        The even p.
    """
    logs: Tensor = _SumOfLogs.apply(query, key, radius.expand(query.shape[-1]))
    return power * logs


class _SumOfLogs(Function):
    """sum over d of log |sin(u_d) / u_d| with u_d = R_d (q_id - k_jd).

    The gradient of a summand by u is cot(u) - 1 / u. It is computed anew from the inputs: what
    autograd would keep is as large as all of the u.
    """

    @staticmethod
    def forward(query: Tensor, key: Tensor, radii: Tensor) -> Tensor:
        logs = query.new_zeros((*query.shape[:-1], key.shape[-2]))
        for angles in _angles(query, key, radii):
            # From 0 the function is even; at 1e-20 sin(u) / u is 1 to the last digit.
            size = angles.abs_().clamp_min_(_LEAST_ANGLE)
            logs += size.sin().div_(size).abs_().clamp_min_(_LEAST_FACTOR).log_()
        return logs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, radii = ctx.saved_tensors
        by_query, by_key = [], []
        for angles in _angles(query, key, radii):
            slopes = upstream * _slopes(angles)
            by_query.append(slopes.sum(dim=-1))
            by_key.append(-slopes.sum(dim=-2))
        rows, columns = torch.stack(by_query, dim=-1), torch.stack(by_key, dim=-1)
        by_radius = (rows * query).flatten(0, -2).sum(0) + (columns * key).flatten(0, -2).sum(0)
        return radii * rows, radii * columns, by_radius


def _angles(query: Tensor, key: Tensor, radii: Tensor) -> Iterator[Tensor]:
    """Yield the u of each coordinate, shape (..., queries, keys)."""
    for q, k, radius in zip(query.unbind(-1), key.unbind(-1), radii.unbind(), strict=True):
        yield (q.unsqueeze(-1) - k.unsqueeze(-2)) * radius


def _slopes(angles: Tensor) -> Tensor:
    """Return the derivative of log |sin(u) / u|, 0 where the factor is held.

    From `_SERIES_TO` on by cot(u) - 1 / u, of which no digit is left for small u; below by its
    power series. Each is continued by a constant, so that their sum needs no masks.
    """
    size = angles.abs()
    small, large = size.clamp_max(_SERIES_TO), size.clamp_min(_SERIES_TO)
    series = _SERIES if angles.dtype == torch.float64 else _SERIES[:4]
    square, total = small * small, torch.zeros_like(small)
    for coefficient in reversed(series):
        total = total * square + coefficient
    held = large.sin().abs() < _LEAST_FACTOR * large
    closed = (large.tan().reciprocal() - large.reciprocal()).masked_fill(held, 0)
    return (closed + _SLOPE_THERE - small * total) * angles.sign()


MECHANISMS.add("fourier", FourierAttention)

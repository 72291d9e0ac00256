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

from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

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
_RELEASED_EPS = 1e-6


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


class FourierAttention(UnliftedAttention):
    """sum_j K_ij v_j / sum_j K_ij with a product of sinc powers for K."""

    capabilities = Capabilities()
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

    Parameters
    ----------
    query, key
        Shape (..., tokens, head_dim).
    radius
        Shape (1,) or (head_dim,).
    power
        The even p.
    """
    radii = radius.expand(query.shape[-1]).unbind()
    logs = torch.zeros_like(query[..., :1]) * torch.zeros_like(key[..., :1]).transpose(-2, -1)
    for each in zip(query.unbind(-1), key.unbind(-1), radii, strict=True):
        if torch.is_grad_enabled():
            # Redone for the gradient: what it would keep is as large as all of q_id - k_jd.
            term = checkpoint(_log_factor, *each, use_reentrant=False, preserve_rng_state=False)
        else:
            term = _log_factor(*each)
        logs = logs + term
    return power * logs


def _log_factor(query: Tensor, key: Tensor, radius: Tensor) -> Tensor:
    angles = radius * (query.unsqueeze(-1) - key.unsqueeze(-2))
    return torch.sinc(angles / torch.pi).abs().clamp_min(_LEAST_FACTOR).log()


MECHANISMS.add("fourier", FourierAttention)

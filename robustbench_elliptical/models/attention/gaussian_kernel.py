"""Gaussian scores between queries and keys, as dot products.

Attention read as regression (Nadaraya-Watson): with K_ij = exp(-c |q_i - k_j|^2), the output
sum_j K_ij v_j / sum_j K_ij is softmax attention with the logits -c |q_i - k_j|^2, in which the
term of the query cancels.
"""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.models.attention.base import Lifted, MechanismSettings
from robustbench_elliptical.models.attention.shared import precise

__all__ = [
    "Coefficient",
    "KernelSettings",
    "coefficient_of",
    "kernel_attention",
    "kernel_keys",
    "squared_distances",
]

Coefficient = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class KernelSettings(MechanismSettings):
    """Settings of a Gaussian kernel between queries and keys, as a card states them."""

    normalize_keys: bool = True
    """Whether keys are scaled to length 1, as in the released code."""
    coefficient: Literal["published"] | Coefficient = "published"
    """c of exp(-c |q - k|^2); published: 1 / sqrt(head_dim)."""


def coefficient_of(setting: str | float, head_dim: int) -> float:
    """Return the kernel's c that a setting names."""
    return head_dim**-0.5 if isinstance(setting, str) else setting


def kernel_keys(key: Tensor, *, normalize: bool) -> Tensor:
    """Return the keys, if asked scaled to length 1 (a zero key stays zero)."""
    if not normalize:
        return key
    lengths = precise(key).square().sum(dim=-1, keepdim=True).add(1e-12)
    return (precise(key) * lengths.rsqrt()).to(key.dtype)


def squared_distances(points: Tensor) -> Tensor:
    """Return the squared distances between all pairs, shape (..., N, N), in float32 at least."""
    from_first = precise(points)
    from_first = from_first - from_first[..., :1, :]
    products = from_first @ from_first.transpose(-2, -1)
    lengths = products.diagonal(dim1=-2, dim2=-1)
    return (lengths.unsqueeze(-1) + lengths.unsqueeze(-2) - 2 * products).clamp_min(0)


def kernel_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    coefficient: float,
    *,
    unit_keys: bool,
    log_weight: Tensor | None = None,
    mask: Tensor | None = None,
    causal: bool = False,
) -> Lifted:
    """Return attention with the scores w_j exp(-c |q_i - k_j|^2) as scaled dot products.

    A bias of a key is one more coordinate of it, against a 1 in each query.

    Parameters
    ----------
    query, key, value
        Shape (batch, heads, tokens, head_dim).
    coefficient
        The kernel's c.
    unit_keys
        Whether all keys have the same length, which then cancels.
    log_weight
        log w of each key, shape (batch, heads, tokens); None: all equal.
    mask, causal
        As in `Lifted`.
    """
    bias = log_weight
    if not unit_keys:
        lengths = -coefficient * precise(key).square().sum(dim=-1)
        bias = lengths if bias is None else bias + lengths
    if bias is None:
        return Lifted(query, key, value, 2 * coefficient, mask, causal)
    one = torch.ones_like(query[..., :1])
    key = torch.cat([2 * coefficient * key, bias.unsqueeze(-1).to(key.dtype)], dim=-1)
    return Lifted(torch.cat([query, one], dim=-1), key, value, 1.0, mask, causal)

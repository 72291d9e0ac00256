"""Attention by scaled and projected kernel density estimates (SPKDE).

Vandermeulen & Scott, NeurIPS 2014 (arXiv 1411.4378), in attention: Han et al., NeurIPS 2023
(arXiv 2210.05794). Scale the density estimate up by beta = 1 / (1 - outlier_fraction),
then project it back onto the densities that weigh the tokens:

    w = argmin over the simplex of w^T G w / 2 - (beta / N) 1^T G w

with the Gram matrix G_jm = exp(-c |x_j - x_m|^2), for the marginal weights u (x = k) and the joint
ones w (x = [k, v]); the output is sum_j w_j K_ij v_j / sum_j u_j K_ij. Tokens in thin regions get
weight 0 (here 1e-8 / N, so that no ratio is infinite). beta = 1 is `kde`.

Solved by accelerated projected gradients (Beck & Teboulle 2009) with an exact projection by
sorting, for each sample and head; under a causal mask for each prefix, which is exact but costs
N^3. Differences from the released code: it solves one problem a layer, with G averaged over batch
and heads, so that an image's prediction depends on its batch mates (`gram_average` restores that),
and has no language model. No gradient flows through the weights, as released, unless
`gradient_mode` is through: then through every iteration.

The 2014 paper projects in L2, where the product of two Gaussian kernels has half the coefficient c.
The released attention does not halve it and neither does the default; `gram_coefficient` can.
"""

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    Capabilities,
    GradientMode,
    LayerShape,
)
from robustbench_elliptical.models.attention.kernel_density import (
    WeightedDensityAttention,
    WeightedDensitySettings,
)

__all__ = [
    "ProjectedDensityAttention",
    "ProjectedDensitySettings",
    "project_to_simplex",
    "projected_weights",
]


class ProjectedDensitySettings(WeightedDensitySettings):
    """Settings of scaled and projected kernel density attention, as a card states them."""

    outlier_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Share of outliers that the scaling makes up for; 0: all keys weigh the same."""
    iterations: int = Field(default=50, ge=1)
    """Steps of the solver."""
    gram_average: Literal["none", "released-batch-mean"] = "none"
    """Whether G is averaged over batch and heads first."""
    gradient_mode: GradientMode = "detached"
    """Whether gradients skip the weights (as released) or flow through them (adaptive attacks)."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say what depends on the weights, which are all equal without outliers."""
        weighs = self.outlier_fraction > 0
        return replace(
            super().decide(summary),
            batch_coupled=weighs and self.gram_average == "released-batch-mean",
            detached_statistics=weighs,
            row_stochastic=not weighs,
        )


class ProjectedDensityAttention(WeightedDensityAttention):
    """sum_j w_j K_ij v_j / sum_j u_j K_ij with projected weights u, w."""

    capabilities = Capabilities(
        causal="with-settings",
        batch_coupled="with-settings",
        detached_statistics="with-settings",
        row_stochastic="with-settings",
    )
    Settings = ProjectedDensitySettings

    def __init__(self, layer: LayerShape, settings: ProjectedDensitySettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        self.gradient_mode = settings.gradient_mode

    def estimate(self, gram: Tensor, *, causal: bool) -> Tensor:
        """Return the solution of the quadratic program."""
        options = self.options
        if causal and options.gram_coefficient == "median":
            raise UsageError(
                "attention spkde has no causal form with gram_coefficient median; give a number"
            )
        if self.gradient_mode == "detached":
            gram = gram.detach()
        shape = gram.shape
        if options.gram_average == "released-batch-mean":
            gram = gram.mean(dim=(0, 1), keepdim=True)
        weights = projected_weights(
            gram, 1 / (1 - options.outlier_fraction), options.iterations, causal=causal
        )
        return weights.expand(*shape[:2], *weights.shape[2:])


def projected_weights(
    gram: Tensor, beta: float, iterations: int = 50, *, causal: bool = False
) -> Tensor:
    """Minimise w^T G w / 2 - (beta / N) 1^T G w over the simplex.

    Parameters
    ----------
    gram
        Positive semi-definite matrices without negative entries, shape (..., tokens, tokens).
    beta
        The scaling, at least 1.
    iterations
        Steps, from uniform weights.
    causal
        Whether row i solves the problem of the tokens up to i; else there is one row.

    Returns
    -------
    Tensor
        Shape (..., 1 or tokens, tokens); rows sum to 1.
    """
    count = gram.shape[-1]
    if causal:
        allowed = torch.ones(gram.shape[-2:], dtype=torch.bool, device=gram.device).tril()
        sizes = torch.arange(1, count + 1, device=gram.device, dtype=gram.dtype).unsqueeze(-1)
        sums = gram.cumsum(dim=-2).tril()
        weights = (allowed / sizes).expand_as(gram)
    else:
        allowed = None
        sizes = gram.new_full((1, 1), count)
        sums = gram.sum(dim=-2, keepdim=True)
        weights = torch.full_like(sums, 1 / count)
    target = beta / sizes * sums
    step = 1 / _curvature(gram, sums, sizes, causal=causal)
    ahead, momentum = weights, 1.0
    for _ in range(iterations):
        following = project_to_simplex(ahead - step * (ahead @ gram - target), allowed)
        grown = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = following + (momentum - 1) / grown * (following - weights)
        weights, momentum = following, grown
    return weights


def _curvature(gram: Tensor, sums: Tensor, sizes: Tensor, *, causal: bool) -> Tensor:
    """Bound the largest eigenvalue that counts, for each row of weights.

    It is at most the largest row sum. Weights sum to 1, so that only their differences meet G: it
    is also at most the Frobenius norm of G with its row and column means taken out, which is far
    less where all tokens are alike. 1 may be taken from G first, for the digits' sake.
    """
    less = gram - 1
    if causal:
        less_sums = less.cumsum(dim=-2).tril()
        squares = less.square().cumsum(dim=-1).cumsum(dim=-2)
        squares = squares.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    else:
        less_sums = less.sum(dim=-2, keepdim=True)
        squares = less.square().sum(dim=(-2, -1)).view(*gram.shape[:-2], 1, 1)
    lengths = less_sums.square().sum(dim=-1, keepdim=True)
    totals = less_sums.sum(dim=-1, keepdim=True)
    centred = squares - 2 * lengths / sizes + (totals / sizes).square()
    return sums.amax(dim=-1, keepdim=True).minimum(centred.clamp_min(1e-6).sqrt())


def project_to_simplex(points: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Return the nearest points whose coordinates are at least 0 and sum to 1, over the last axis.

    Parameters
    ----------
    points
        Shape (..., coordinates).
    allowed
        Which coordinates may be other than 0, at least one a row; None: all.
    """
    if allowed is not None:
        # What lies more than 1 below the largest coordinate is projected to 0.
        least = points.detach().masked_fill(~allowed, float("-inf")).amax(-1, keepdim=True) - 2
        points = torch.where(allowed, points, least)
    falling = points.sort(dim=-1, descending=True).values
    excess = falling.cumsum(dim=-1) - 1
    places = torch.arange(1, points.shape[-1] + 1, device=points.device)
    support = (falling * places > excess).sum(dim=-1, keepdim=True)
    return (points - excess.gather(-1, support - 1) / support).clamp_min(0)


MECHANISMS.add("spkde", ProjectedDensityAttention)

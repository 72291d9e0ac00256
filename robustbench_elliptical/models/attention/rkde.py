"""Attention by robust kernel density estimates (Han et al., NeurIPS 2023, arXiv 2210.05794).

The kernel density estimate is a mean in feature space; its M-estimate (Kim & Scott, JMLR 2012)
weighs tokens by psi(h) / h of their distance h to it. With the Gram matrix
G_jm = exp(-c |x_j - x_m|^2), start from w = 1 / N and repeat

    h_j^2 = 1 - 2 (G w)_j + w^T G w        w_j = psi(h_j) / h_j, divided by its sum

for the marginal weights u (x = k) and the joint ones w (x = [k, v]); the output is
sum_j w_j K_ij v_j / sum_j u_j K_ij. psi(h) / h is Huber's min(1, a / h), or Hampel's with b = 2a,
c = 3a: 1, then a / h, then a (c - h) / ((c - b) h), and 0.01 from c on.

Differences from the released code. Its vision models add (G w)_j instead of subtracting it twice:
then h >= 1 always, every token is beyond a and an outlier weighs a little more than an inlier;
`released_sign` restores that. With more than one iteration it averages the weights over batch and
heads before the next; `average` restores that, which couples the samples of a batch. Its language
model's weights come out uniform, which is `kde`. Under a causal mask the weights here are those of
each prefix, exactly.
"""

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.base import MECHANISMS, Capabilities, LayerShape
from robustbench_elliptical.models.attention.kernel_density import (
    WeightedDensityAttention,
    WeightedDensitySettings,
)

__all__ = ["RobustDensityAttention", "RobustDensitySettings", "robust_weights"]

Loss = Literal["huber", "hampel"]
_HAMPEL_FLOOR = 0.01


class RobustDensitySettings(WeightedDensitySettings):
    """Settings of robust kernel density attention, as a card states them."""

    loss: Loss = "huber"
    """The loss whose psi weighs the tokens."""
    threshold: float = Field(default=0.2, gt=0)
    """a: distances up to it are not robust (0.1 to 1 in the paper)."""
    iterations: int = Field(default=1, ge=1)
    """Times the weights are estimated; 1 as published."""
    released_sign: bool = False
    """Whether h^2 = 1 + (G w)_j + w^T G w, as in the released vision models."""
    average: Literal["none", "released-batch-mean"] = "none"
    """Whether the weights are averaged over batch and heads before each further iteration."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say what depends on the weights, and on their averages between iterations.

        With the released sign h is at least 1: where Hampel's c is no more, all weights are equal.
        """
        uniform = self.released_sign and self.loss == "hampel" and 3 * self.threshold <= 1
        averages = self.average == "released-batch-mean" and self.iterations > 1
        return replace(
            super().decide(summary),
            batch_coupled=averages and not uniform,
            row_stochastic=uniform,
        )


class RobustDensityAttention(WeightedDensityAttention):
    """sum_j w_j K_ij v_j / sum_j u_j K_ij with M-estimated weights u, w; gradients flow."""

    capabilities = Capabilities(
        causal="with-settings", batch_coupled="with-settings", row_stochastic="with-settings"
    )
    Settings = RobustDensitySettings

    def __init__(self, layer: LayerShape, settings: RobustDensitySettings) -> None:
        super().__init__(layer, settings)
        self.options = settings

    def estimate(self, gram: Tensor, *, causal: bool) -> Tensor:
        """Return the M-estimated weights."""
        options = self.options
        if causal and options.gram_coefficient == "median":
            raise UsageError(
                "attention rkde has no causal form with gram_coefficient median; give a number"
            )
        return robust_weights(
            gram,
            loss=options.loss,
            threshold=options.threshold,
            iterations=options.iterations,
            causal=causal,
            released_sign=options.released_sign,
            released_average=options.average == "released-batch-mean",
        )


def robust_weights(
    gram: Tensor,
    *,
    loss: Loss = "huber",
    threshold: float = 0.2,
    iterations: int = 1,
    causal: bool = False,
    released_sign: bool = False,
    released_average: bool = False,
) -> Tensor:
    """Estimate the weights of tokens in a robust kernel density estimate.

    Parameters
    ----------
    gram
        Kernel between tokens, ones on the diagonal, shape (batch, heads, tokens, tokens).
    loss, threshold, iterations, released_sign
        See `RobustDensitySettings`.
    causal
        Whether row i has the weights of tokens up to i; else there is one row.
    released_average
        Whether the weights are averaged over batch and heads between iterations.

    Returns
    -------
    Tensor
        Shape (batch, heads, 1 or tokens, tokens); rows sum to 1.
    """
    count = gram.shape[-1]
    if causal:
        allowed = torch.ones_like(gram[0, 0], dtype=torch.bool).tril()
        sizes = torch.arange(1, count + 1, device=gram.device, dtype=gram.dtype).unsqueeze(-1)
        similarity = gram.cumsum(dim=-2) / sizes
        weights = allowed / sizes
    else:
        allowed = None
        similarity = gram.mean(dim=-2, keepdim=True)
        weights = gram.new_full((1, count), 1 / count)
    for step in range(iterations):
        if step > 0:
            if released_average:
                weights = weights.mean(dim=(0, 1), keepdim=True)
            similarity = weights @ gram
        spread = (weights * similarity).sum(dim=-1, keepdim=True)
        squared = 1 + (similarity if released_sign else -2 * similarity) + spread
        factor = _influence(squared.clamp_min(1e-12).sqrt(), loss, threshold)
        if allowed is not None:
            factor = factor.masked_fill(~allowed, 0)
        weights = factor / factor.sum(dim=-1, keepdim=True)
    return weights


def _influence(distance: Tensor, loss: Loss, threshold: float) -> Tensor:
    """Return psi(h) / h."""
    huber = (threshold / distance).clamp_max(1)
    if loss == "huber":
        return huber
    second, third = 2 * threshold, 3 * threshold
    falling = huber * (third - distance) / (third - second)
    beyond = torch.full_like(distance, _HAMPEL_FLOOR)
    return torch.where(distance < second, huber, torch.where(distance < third, falling, beyond))


MECHANISMS.add("rkde", RobustDensityAttention)

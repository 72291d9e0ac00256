"""Kernel density attention with robustly weighted keys.

With a Gaussian kernel K_ij between queries and keys, weights u of the keys alone (marginal) and w
of keys and values (joint) make both densities robust: sum_j w_j K_ij v_j / sum_j u_j K_ij. Their
rows don't sum to 1. Under a causal mask each query has weights of its own, computed from the tokens
up to it.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from robustbench_elliptical.models.attention.base import (
    AttentionMechanism,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    Lifted,
    State,
    fused_attention,
)
from robustbench_elliptical.models.attention.gaussian_kernel import (
    Coefficient,
    KernelSettings,
    coefficient_of,
    kernel_attention,
    kernel_keys,
    squared_distances,
)
from robustbench_elliptical.models.attention.shared import precise

__all__ = ["WeightedDensityAttention", "WeightedDensitySettings", "effective_keys"]

_SMALLEST_WEIGHT = 1e-8
"""Least weight of a key, as a share of a uniform one, so that no ratio of weights is infinite."""


class WeightedDensitySettings(KernelSettings):
    """Settings of density estimates with weighted keys, as a card states them."""

    gram_coefficient: Literal["same", "median"] | Coefficient = "same"
    """c of the kernel between keys that the weights come from: that of the attention (as
    published; for heads of 64 the keys are then nearly orthogonal and the weights nearly uniform),
    1 / the median squared distance of each sample and head (no causal form), or a number."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say that a median over all pairs of tokens has no causal form."""
        return replace(summary, causal="no" if self.gram_coefficient == "median" else "exact")


def effective_keys(weights: Tensor) -> Tensor:
    """Return how many equally weighted keys are as concentrated, 1 / sum w^2."""
    return 1 / weights.square().sum(dim=-1)


class WeightedDensityAttention(AttentionMechanism):
    """sum_j w_j K_ij v_j / sum_j u_j K_ij with weights u, w that a subclass estimates."""

    def __init__(self, layer: LayerShape, settings: WeightedDensitySettings) -> None:
        super().__init__(layer, settings)
        self.kernel = settings

    @abstractmethod
    def estimate(self, gram: Tensor, *, causal: bool) -> Tensor:
        """Return weights of the keys, none negative, rows sum to 1.

        Parameters
        ----------
        gram
            Kernel between tokens, shape (batch, heads, tokens, tokens).
        causal
            Whether every query has weights of its own, of the tokens up to it. The result's shape
            is then (batch, heads, tokens, tokens), else (batch, heads, 1, tokens).
        """

    def key_weights(self, inputs: HeadInputs) -> tuple[Tensor, Tensor]:
        """Return the marginal and the joint weights, see `estimate`."""
        key = precise(kernel_keys(inputs.key, normalize=self.kernel.normalize_keys))
        joint = torch.cat([key, precise(inputs.value)], dim=-1)
        with torch.autocast(device_type=key.device.type, enabled=False):
            marginal, both = (
                _floored(
                    self.estimate(self._gram(points), causal=inputs.causal), causal=inputs.causal
                )
                for points in (key, joint)
            )
        return marginal, both

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Add log u to the logits and scale the values by w / u.

        Under a causal mask that differs by query: there is no lifted form then.
        """
        if inputs.causal:
            raise NotImplementedError(
                f"{type(self).__name__} has no lifted form under a causal mask; use forward"
            )
        key = kernel_keys(inputs.key, normalize=self.kernel.normalize_keys)
        weights = self.key_weights(inputs)
        marginal, joint = (each.squeeze(-2) for each in weights)
        ratio = (joint / marginal).unsqueeze(-1)
        lifted = kernel_attention(
            inputs.query,
            key,
            (precise(inputs.value) * ratio).to(inputs.value.dtype),
            coefficient_of(self.kernel.coefficient, inputs.query.shape[-1]),
            unit_keys=self.kernel.normalize_keys,
            # Times the number of keys: small numbers keep their digits in bfloat16.
            log_weight=(marginal * marginal.shape[-1]).log(),
        )
        return lifted, _following(state, weights)

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend; through the fused kernel unless there is a causal mask."""
        if inputs.causal:
            output, _, state = self.explicit(inputs, state)
            return output, state
        lifted, state = self.lift(inputs, state)
        return fused_attention(lifted), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products."""
        coefficient = coefficient_of(self.kernel.coefficient, inputs.query.shape[-1])
        normalize = self.kernel.normalize_keys
        query, value = precise(inputs.query), precise(inputs.value)
        key = precise(kernel_keys(inputs.key, normalize=normalize))
        weights = self.key_weights(inputs)
        with torch.autocast(device_type=query.device.type, enabled=False):
            log_kernel = 2 * coefficient * (query @ key.transpose(-2, -1))
            if not normalize:
                log_kernel = log_kernel - coefficient * key.square().sum(-1).unsqueeze(-2)
            if inputs.causal:
                log_kernel = log_kernel.masked_fill(~_up_to(log_kernel), float("-inf"))
            marginal, joint = (_safe_log(each) for each in weights)
            total = (log_kernel + marginal).logsumexp(dim=-1, keepdim=True)
            shares = (log_kernel + joint - total).exp()
            output = shares @ value
        dtype = inputs.value.dtype
        return Explicit(output.to(dtype), shares.to(dtype), _following(state, weights))

    def _gram(self, points: Tensor) -> Tensor:
        distances = squared_distances(points)
        setting = self.kernel.gram_coefficient
        if setting == "median":
            return torch.exp(-distances / self._median(distances))
        if setting == "same":
            setting = coefficient_of(self.kernel.coefficient, self.layer.head_dim)
        return torch.exp(-setting * distances)

    def _median(self, distances: Tensor) -> Tensor:
        """Return the median over pairs, shape (batch, heads, 1, 1); the published c if it is 0."""
        default = 1 / coefficient_of("published", self.layer.head_dim)
        count = distances.shape[-1]
        if count == 1:
            return distances.new_full((1, 1, 1, 1), default)
        first, second = torch.triu_indices(count, count, 1, device=distances.device)
        median = distances[..., first, second].median(dim=-1).values[..., None, None]
        return torch.where(median > 0, median, torch.full_like(median, default))


def _up_to(square: Tensor) -> Tensor:
    return torch.ones(square.shape[-2:], dtype=torch.bool, device=square.device).tril()


def _floored(weights: Tensor, *, causal: bool) -> Tensor:
    """Lift weights to the smallest one wherever a token counts at all."""
    if not causal:
        return weights.clamp_min(_SMALLEST_WEIGHT / weights.shape[-1])
    sizes = torch.arange(1, weights.shape[-1] + 1, device=weights.device).unsqueeze(-1)
    return weights.maximum((_SMALLEST_WEIGHT / sizes).to(weights.dtype)).tril()


def _safe_log(weights: Tensor) -> Tensor:
    return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()


def _following(state: State, weights: tuple[Tensor, Tensor]) -> State:
    """Report how concentrated the weights of all tokens are, shape (batch, heads, 2)."""
    counts = [effective_keys(each[:, :, -1].detach()) for each in weights]
    return {**state, "effective_keys": torch.stack(counts, dim=-1)}

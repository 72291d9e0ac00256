"""What the kernel density mechanisms share: Gaussian scores and robustly weighted keys.

Attention read as regression (Nadaraya-Watson): with K_ij = exp(-c |q_i - k_j|^2), the output
sum_j K_ij v_j / sum_j K_ij is softmax attention with the logits -c |q_i - k_j|^2, in which the
term of the query cancels.

Weights u of the keys alone (marginal) and w of keys and values (joint) make both densities robust:
sum_j w_j K_ij v_j / sum_j u_j K_ij. Their rows don't sum to 1. Under a causal mask each query has
weights of its own, computed from the tokens up to it.
"""

from abc import abstractmethod
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.models.attention.base import (
    AttentionMechanism,
    Explicit,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
    fused_attention,
)
from robustbench_elliptical.models.attention.shared import precise

__all__ = [
    "KernelSettings",
    "WeightedDensityAttention",
    "WeightedDensitySettings",
    "coefficient_of",
    "effective_keys",
    "kernel_attention",
    "kernel_keys",
    "squared_distances",
]

Coefficient = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_SMALLEST_WEIGHT = 1e-8
"""Least weight of a key, as a share of a uniform one, so that no ratio of weights is infinite."""


class KernelSettings(MechanismSettings):
    """Settings of a Gaussian kernel between queries and keys, as a card states them."""

    normalize_keys: bool = True
    """Whether keys are scaled to length 1, as in the released code."""
    coefficient: Literal["published"] | Coefficient = "published"
    """c of exp(-c |q - k|^2); published: 1 / sqrt(head_dim)."""


class WeightedDensitySettings(KernelSettings):
    """Settings of density estimates with weighted keys, as a card states them."""

    gram_coefficient: Literal["same", "median"] | Coefficient = "same"
    """c of the kernel between keys that the weights come from: that of the attention (as
    published; for heads of 64 the keys are then nearly orthogonal and the weights nearly uniform),
    1 / the median squared distance of each sample and head (no causal form), or a number."""


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

"""Performer's FAVOR+ attention (Choromanski et al., ICLR 2021, arXiv 2009.14794, section 2).

exp(x . y) is the mean over random w of exp(w . x - |x|^2 / 2) exp(w . y - |y|^2 / 2), so with
features phi_f(x) = exp(w_f . x - |x|^2 / 2) of x = q / head_dim^(1/4) and k likewise, attention is
phi(Q) (phi(K)^T V) / (phi(Q) phi(K)^T 1) at a cost linear in the tokens. The w_f are orthogonal in
blocks of head_dim, with lengths like those of Gaussian vectors. Kernel hyperbolic has exp(-w_f . x)
as well; kernel relu has max(w_f . x, 0) + 1e-3 instead and does not approximate softmax.

No feature is ever out of range: in logarithms, with Z_f = log sum_j phi_f(k_j), the attention is
A_ij = sum_f P_if S_fj, P_i the softmax over f of log phi_f(q_i) + Z_f and S_f the softmax over j of
log phi_f(k_j). Under a causal mask Z_f runs along the tokens.

The w are drawn once from `seed` for each layer, and kept in the state dict. Differences from the
released language model: it adds 1e-4 to each feature and 1e-5 to the denominator (`eps_mode`),
leaves head_dim^(1/4) out (`scale`), draws w with rows and columns swapped, which makes no two w_f
orthogonal (`projection`), draws anew in every training forward (not offered), and has 16 features,
hyperbolic. The released Long Range Arena model has 256 with kernel relu.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.core.randomness import keyed_generator
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.shared import UnliftedAttention, precise

__all__ = ["PerformerAttention", "PerformerSettings", "draw_projection"]

Projection = Literal["orthogonal", "independent", "released-swapped"]
_CHUNK = 16
_RELU_EPS = 1e-3
_RELEASED_FEATURE_EPS = 1e-4
_RELEASED_SUM_EPS = 1e-5


class PerformerSettings(MechanismSettings):
    """Settings of Performer's attention, as a card states them."""

    features: int = Field(default=256, ge=1)
    """Number of random directions w; the error falls with its square root."""
    kernel: Literal["softmax", "hyperbolic", "relu"] = "softmax"
    """Features: positive ones of softmax, those with both signs of w, or rectified ones."""
    projection: Projection = "orthogonal"
    """How w is drawn."""
    scale: Literal["sqrt", "none"] = "sqrt"
    """Factor of the logits it stands for: 1 / sqrt(head_dim), or 1 as in the released language
    model."""
    eps_mode: Literal["none", "released"] = "none"
    """Whether the released constants are added to features and denominator."""
    seed: int = Field(default=0, ge=0)
    """Seed of w."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say that weights sum to less than 1 where something is added to the denominator."""
        return replace(summary, row_stochastic=self.eps_mode == "none")


class PerformerAttention(UnliftedAttention):
    """phi(Q) (phi(K)^T V) / (phi(Q) phi(K)^T 1) with random features phi."""

    capabilities = Capabilities(row_stochastic="with-settings")
    Settings = PerformerSettings
    projection: Tensor

    def __init__(self, layer: LayerShape, settings: PerformerSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        generator = keyed_generator(settings.seed, "performer/projection", layer.index)
        draws = draw_projection(settings.features, layer.head_dim, generator, settings.projection)
        self.register_buffer("projection", torch.from_numpy(draws).float())

    def log_features(self, vectors: Tensor) -> Tensor:
        """Return the logarithms of phi, shape (..., tokens, features), of queries or keys."""
        if self.options.scale == "sqrt":
            vectors = vectors * vectors.shape[-1] ** -0.25
        along = vectors @ self.projection.to(vectors.dtype).transpose(0, 1)
        if self.options.kernel == "relu":
            return (along.relu() + _RELU_EPS).log()
        if self.options.kernel == "hyperbolic":
            along = torch.cat([along, -along], dim=-1)
        return along - vectors.square().sum(dim=-1, keepdim=True) / 2

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend at a cost linear in the number of tokens."""
        value = precise(inputs.value)
        with torch.autocast(device_type=value.device.type, enabled=False):
            query, key = (self.log_features(precise(each)) for each in inputs[:2])
            if self.options.eps_mode == "released":
                output = _released(query, key, value, causal=inputs.causal)
            elif inputs.causal:
                output = _causal(query, key, value)
            else:
                shares, spread = _factors(query, key)
                output = shares @ (spread @ value)
        return output.to(inputs.value.dtype), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with all pairs' weights, which costs their number times the features."""
        value = precise(inputs.value)
        with torch.autocast(device_type=value.device.type, enabled=False):
            query, key = (self.log_features(precise(each)) for each in inputs[:2])
            if self.options.eps_mode == "released":
                weights = _released_weights(query, key, causal=inputs.causal)
            elif inputs.causal:
                weights = _causal_weights(query, key)
            else:
                shares, spread = _factors(query, key)
                weights = shares @ spread
            output = weights @ value
        dtype = inputs.value.dtype
        return Explicit(output.to(dtype), weights.to(dtype), state)


def draw_projection(
    features: int, dim: int, generator: np.random.Generator, kind: Projection = "orthogonal"
) -> npt.NDArray[np.float64]:
    """Draw the directions w, shape (features, dim), each entry a standard normal by itself.

    Orthogonal: those in a block of `dim` are orthogonal to each other. Released-swapped: the `dim`
    columns are, as vectors of `features` numbers.
    """
    if kind == "independent":
        return generator.standard_normal((features, dim))
    if kind == "released-swapped":
        return np.ascontiguousarray(_orthogonal_rows(dim, features, generator).T)
    return _orthogonal_rows(features, dim, generator)


def _orthogonal_rows(
    rows: int, columns: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    blocks = []
    for _ in range(-(-rows // columns)):
        basis, upper = np.linalg.qr(generator.standard_normal((columns, columns)))
        blocks.append((basis * np.sign(np.diagonal(upper))).T)
    lengths = np.linalg.norm(generator.standard_normal((rows, columns)), axis=1, keepdims=True)
    drawn: npt.NDArray[np.float64] = np.concatenate(blocks)[:rows] * lengths
    return drawn


def _factors(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Return P, shape (..., queries, features), and S, shape (..., features, keys)."""
    totals = key.logsumexp(dim=-2, keepdim=True)
    return (query + totals).softmax(dim=-1), key.softmax(dim=-2).transpose(-2, -1)


def _causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Carry sum_j phi_f(k_j) v_j / sum_j phi_f(k_j) from chunk to chunk."""
    totals = key.logcumsumexp(dim=-2)
    shares = (query + totals).softmax(dim=-1)
    outputs = []
    carried: tuple[Tensor, Tensor] | None = None
    for start in range(0, key.shape[-2], _CHUNK):
        here = slice(start, start + _CHUNK)
        total, share = totals[..., here, :], shares[..., here, :]
        output = _pairs(share, total, key[..., here, :], 0) @ value[..., here, :]
        end = total[..., -1:, :]
        memory = (key[..., here, :] - end).exp().transpose(-2, -1) @ value[..., here, :]
        if carried is not None:
            before, means = carried
            output = output + (share * (before - total).exp()) @ means
            memory = memory + (before - end).exp().transpose(-2, -1) * means
        outputs.append(output)
        carried = (end, memory)
    return torch.cat(outputs, dim=-2)


def _causal_weights(query: Tensor, key: Tensor) -> Tensor:
    totals = key.logcumsumexp(dim=-2)
    shares = (query + totals).softmax(dim=-1)
    rows = []
    for start in range(0, key.shape[-2], _CHUNK):
        here = slice(start, start + _CHUNK)
        rows.append(_pairs(shares[..., here, :], totals[..., here, :], key, start))
    return torch.cat(rows, dim=-2)


def _pairs(share: Tensor, total: Tensor, key: Tensor, start: int) -> Tensor:
    """Return sum_f P_if phi_f(k_j) / exp(Z_if) for keys up to the query, 0 for others.

    `start` is the position of the first query among the keys.
    """
    queries, keys = share.shape[-2], key.shape[-2]
    later = torch.ones(queries, keys, dtype=torch.bool, device=key.device).triu(start + 1)
    logs = key.unsqueeze(-3) - total.unsqueeze(-2)
    ratios = logs.masked_fill(later.unsqueeze(-1), float("-inf")).exp()
    return (ratios @ share.unsqueeze(-1)).squeeze(-1)


def _released_features(logs: Tensor) -> Tensor:
    factor: float = logs.shape[-1] ** -0.5
    return (logs.exp() + _RELEASED_FEATURE_EPS) * factor


def _released(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> Tensor:
    if causal:  # the released code masks a matrix of all pairs as well
        return _released_weights(query, key, causal=True) @ value
    left, right = _released_features(query), _released_features(key)
    sums = left @ right.sum(dim=-2).unsqueeze(-1) + _RELEASED_SUM_EPS
    return left @ (right.transpose(-2, -1) @ value) / sums


def _released_weights(query: Tensor, key: Tensor, *, causal: bool) -> Tensor:
    weights = _released_features(query) @ _released_features(key).transpose(-2, -1)
    if causal:
        weights = weights.tril()
    return weights / (weights.sum(dim=-1, keepdim=True) + _RELEASED_SUM_EPS)


MECHANISMS.add("performer", PerformerAttention)

"""Mixture-of-Gaussian-keys attention, MGK (Nguyen et al., ICML 2022, arXiv 2110.08678).

Each key is a mixture: A_ij is proportional to
sum_r pi_r exp(-|q_i - k_jr|^2 / (2 sigma_r^2)), normalised over j. With key_mode 2keys each
component after the first has a projection of the block's input of its own; with shift k_jr is
k_j - mu_r. sigma_r^2 = sqrt(head_dim) / sharpness_r, released with sharpness 1 and 3. pi is held
in [0, 1] and not normalised. rule hard takes the largest exponential in place of the weighted sum.

Computed as softmax attention over R N keys with two more coordinates, thus through logarithms. The
released code exponentiates the distances as they are and adds 1e-6 to each row's sum, so that far
queries get a row of zeros: `eps_mode` restores that; rows then sum to less than 1. Its pi has an
entry for each of 256 key positions, which ties the model to that length: `pi_scope` position.

One component is softmax attention only for keys of one length, as |k|^2 does not cancel. The
released "soft" rule, which overwrites pi in every training forward, is left out.
"""

from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
    explicit_attention,
    fused_attention,
)
from robustbench_elliptical.models.attention.shared import (
    offsets,
    precise,
    project,
    refuse_longer,
    split_heads,
)

__all__ = ["MixtureKeysAttention", "MixtureKeysSettings"]

Sharpness = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_RELEASED_EPS = 1e-6
_INITIAL_STD = 0.02
_INITIAL_SHIFT_STD = 0.5


class MixtureKeysSettings(MechanismSettings):
    """Settings of mixture-of-Gaussian-keys attention, as a card states them."""

    key_mode: Literal["2keys", "shift"] = "2keys"
    """Where the components' keys come from: a projection each, or one key minus learned shifts."""
    sharpness: tuple[Sharpness, ...] = Field(default=(1.0, 3.0), min_length=1)
    """sqrt(head_dim) / sigma_r^2 of each component; their number is that of the components."""
    rule: Literal["mixture", "hard"] = "mixture"
    """The weighted sum of the components, or the largest of them, without pi."""
    pi_scope: Literal["head", "position"] = "head"
    """Whether pi differs by head, or by head and key position too (released; the model then takes
    no more tokens than it was built for)."""
    key_bias: bool = False
    """Whether the further key projections have a bias."""
    eps_mode: Literal["none", "released"] = "none"
    """Whether 1e-6 is added to the sum of the exponentials, as in the released code."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say what ties the model to a length: pi, which the rule hard has not."""
        return replace(
            summary,
            fixed_length=self.pi_scope == "position" and self.rule == "mixture",
            row_stochastic=self.eps_mode == "none",
        )


class MixtureKeysAttention(AttentionMechanism):
    """softmax over keys of log sum_r pi_r exp(-|q - k_r|^2 / (2 sigma_r^2)), times v."""

    capabilities = Capabilities(fixed_length="with-settings", row_stochastic="with-settings")
    Settings = MixtureKeysSettings

    def __init__(self, layer: LayerShape, settings: MixtureKeysSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        self.components = len(settings.sharpness)
        self.coefficients = [each / (2 * layer.head_dim**0.5) for each in settings.sharpness]
        size = (self.components, layer.num_heads, 1)
        if settings.rule == "mixture":
            positions = layer.num_tokens if settings.pi_scope == "position" else 1
            shape = (*size[:2], positions)
            self.pi = nn.Parameter(torch.full(shape, 1 / self.components))
        if settings.key_mode == "shift":
            shifts = torch.randn(*size, layer.head_dim) * _INITIAL_SHIFT_STD
            shifts[0] = 0
            self.shifts = nn.Parameter(shifts)
        elif self.components > 1:
            width = (self.components - 1) * layer.num_heads * layer.head_dim
            self.further_keys = nn.Linear(layer.dim, width, bias=settings.key_bias)
            nn.init.normal_(self.further_keys.weight, std=_INITIAL_STD)
            if settings.key_bias:
                nn.init.zeros_(self.further_keys.bias)

    def component_keys(self, inputs: HeadInputs) -> list[Tensor]:
        """Return the keys of each component, shape (batch, heads, tokens, head_dim) each."""
        key = inputs.key
        if self.options.key_mode == "shift":
            return [key - each.to(key.dtype) for each in self.shifts]
        if self.components == 1:
            return [key]
        further = project(self.further_keys, inputs.tokens).to(key.dtype)
        parts = further.chunk(self.components - 1, dim=-1)
        return [key, *(split_heads(each, self.layer.num_heads) for each in parts)]

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Write the mixture as attention over every component's keys."""
        if not self._is_liftable:
            raise NotImplementedError(
                "MixtureKeysAttention has a lifted form only with rule mixture and eps_mode none"
            )
        query, dtype = precise(inputs.query), inputs.query.dtype
        count = query.shape[-2]
        lengths = query.square().sum(dim=-1, keepdim=True)
        keys = []
        for coefficient, key, log_pi in zip(
            self.coefficients, self.component_keys(inputs), self._log_pi(inputs), strict=True
        ):
            exact = precise(key)
            bias = log_pi - coefficient * exact.square().sum(dim=-1)
            # Of the query's length only what differs from the first component counts.
            slope = torch.full_like(bias, self.coefficients[0] - coefficient)
            extra = torch.stack([slope, bias.maximum(_lowest(bias, dtype))], dim=-1)
            keys.append(torch.cat([2 * coefficient * exact, extra], dim=-1).to(dtype))
        stretched = torch.cat([query, lengths, torch.ones_like(lengths)], dim=-1).to(dtype)
        mask = None
        if inputs.causal:
            mask = (offsets(count, query.device) >= 0).repeat(1, self.components)
        value = inputs.value.repeat(1, 1, self.components, 1)
        return Lifted(stretched, torch.cat(keys, dim=-2), value, 1.0, mask), state

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend; through the fused kernel where the settings allow."""
        if self._is_liftable:
            lifted, state = self.lift(inputs, state)
            return fused_attention(lifted), state
        output, _, state = self.explicit(inputs, state)
        return output, state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products; a key's weight is the sum over its components."""
        if self._is_liftable:
            lifted, state = self.lift(inputs, state)
            output, parts = explicit_attention(lifted)
            weights = torch.stack(parts.chunk(self.components, dim=-1)).sum(dim=0)
            return Explicit(output, weights, state)
        value = precise(inputs.value)
        with torch.autocast(device_type=value.device.type, enabled=False):
            weights = self._plain_weights(inputs)
            output = weights @ value
        dtype = inputs.value.dtype
        return Explicit(output.to(dtype), weights.to(dtype), state)

    @property
    def _is_liftable(self) -> bool:
        return self.options.rule == "mixture" and self.options.eps_mode == "none"

    def _plain_weights(self, inputs: HeadInputs) -> Tensor:
        query = precise(inputs.query)
        keys = [precise(each) for each in self.component_keys(inputs)]
        scores = torch.stack(
            [
                -coefficient * _between(query, key)
                for coefficient, key in zip(self.coefficients, keys, strict=True)
            ]
        )
        if self.options.rule == "hard":
            logits = scores.amax(dim=0)
        else:
            log_pi = torch.stack([each.expand(keys[0].shape[1:3]) for each in self._log_pi(inputs)])
            logits = (scores + log_pi[:, None, :, None]).logsumexp(dim=0)
        if inputs.causal:
            later = offsets(query.shape[-2], query.device) < 0
            logits = logits.masked_fill(later, float("-inf"))
        if self.options.eps_mode == "released":
            mixture = logits.exp()
            return mixture / (mixture.sum(dim=-1, keepdim=True) + _RELEASED_EPS)
        return logits.softmax(dim=-1)

    def _log_pi(self, inputs: HeadInputs) -> list[Tensor]:
        """Return log pi of each component, shape (heads, keys or 1), about -inf where pi is 0."""
        pi = precise(self.pi).to(precise(inputs.query).dtype)
        if self.options.pi_scope == "position":
            refuse_longer("mgk with pi_scope position", inputs, self.layer.num_tokens)
            pi = pi[..., : inputs.query.shape[-2]]
        held = pi.clamp(0, 1)
        positive = torch.where(held > 0, held, torch.ones_like(held))
        logs = torch.where(held > 0, positive.log(), torch.finfo(held.dtype).min / 4)
        return list(logs.unbind())


def _between(query: Tensor, key: Tensor) -> Tensor:
    """Return the squared distances, shape (..., queries, keys)."""
    lengths = query.square().sum(-1).unsqueeze(-1) + key.square().sum(-1).unsqueeze(-2)
    return (lengths - 2 * query @ key.transpose(-2, -1)).clamp_min(0)


def _lowest(like: Tensor, dtype: torch.dtype) -> Tensor:
    """Return what is as good as -inf in sums and still a number in the given precision."""
    return torch.full_like(like, torch.finfo(dtype).min / 4)


MECHANISMS.add("mgk", MixtureKeysAttention)

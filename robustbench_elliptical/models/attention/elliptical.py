"""Elliptical Attention (Nielsen et al., NeurIPS 2024, arXiv 2406.13770).

Attention whose distance is a Mahalanobis metric: logits = (q * m) . k / sqrt(head_dim), where the
diagonal m of each sample and head is estimated from how much each value coordinate moved since the
previous block (Proposition 3, equation 10) and then scaled (Remark 3). It has no parameters, so
its state dict is that of plain attention and nothing in a checkpoint says that it is Elliptical.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import keyed_uniform
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    GradientMode,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
)

__all__ = [
    "EllipticalAttention",
    "EllipticalSettings",
    "Scaling",
    "Scope",
    "Statistic",
    "estimate_metric",
]

Scaling = Literal["max", "mean", "none"]
Scope = Literal["window", "prefix"]
Statistic = Literal["mean", "median"]


class EllipticalSettings(MechanismSettings):
    """Settings of Elliptical Attention, as a card states them."""

    scaling: Scaling
    """Divide the metric by its largest coordinate (the paper's default), its mean, or nothing."""
    statistic: Statistic = "mean"
    """How the movement is averaged over tokens: mean (training), median (released attacks)."""
    blocks: tuple[int, ...] | Literal["all-but-first"] = "all-but-first"
    """Blocks that use the metric, from 0; block 0 has no previous values and stays plain."""
    delta: float = Field(default=1.0, gt=0)
    """The assumed movement of the keys (equation 10); it cancels unless scaling is none."""
    metric: Literal["estimated", "identity", "constant", "random"] = "estimated"
    """The published estimate, or a control: m = 1, m = its mean, or m drawn from a seed."""
    random_floor: float = Field(default=0.0, ge=0, lt=1)
    """Lowest coordinate of the random control before scaling (0.3 in the released attacks)."""
    metric_scope: Scope = "window"
    """Tokens the estimate averages over: all of them (as published; under a causal mask it sees the
    future), or for each query those up to it (exactly causal)."""
    scale: Literal["sqrt", "none"] = "sqrt"
    """Factor of the logits in blocks with the metric: 1 / sqrt(head_dim), or 1 as in the released
    language models. Plain blocks always have the former."""
    random_seed: int = Field(default=0, ge=0)
    """Seed of the random control; each sample has its own draw."""
    gradient_mode: GradientMode = "detached"
    """Whether gradients skip the metric (as published) or flow through it (adaptive attacks)."""

    @field_validator("blocks")
    @classmethod
    def _first_block_is_plain(cls, blocks: object) -> object:
        if isinstance(blocks, tuple) and any(index < 1 for index in blocks):
            raise ValueError("blocks must be 1 or more: block 0 has no previous values")
        return blocks

    @model_validator(mode="after")
    def _median_needs_the_window(self) -> "EllipticalSettings":
        if self.metric_scope == "prefix" and self.statistic == "median":
            raise ValueError("statistic median has no prefix scope; use statistic mean")
        return self

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say what the metric depends on; scaled by its own mean, the constant control is 1."""
        used = self.blocks != ()
        one = self.metric == "constant" and self.scaling == "mean"
        estimated = used and self.metric in ("estimated", "constant") and not one
        return replace(
            summary,
            causal="leaks" if estimated and self.metric_scope == "window" else "exact",
            stochastic=used and self.metric == "random",
            detached_statistics=estimated,
        )


class EllipticalAttention(AttentionMechanism):
    """softmax((q * m) k^T / sqrt(head_dim)) v with m of shape (batch, heads, 1 or N, head_dim)."""

    capabilities = Capabilities(
        causal="with-settings", stochastic="with-settings", detached_statistics="with-settings"
    )
    Settings = EllipticalSettings

    def __init__(self, layer: LayerShape, settings: EllipticalSettings) -> None:
        super().__init__(layer, settings)
        if settings.blocks == "all-but-first":
            self.has_metric = layer.index > 0
        else:
            if max(settings.blocks, default=1) >= layer.depth:
                raise UsageError(
                    f"attention setting blocks must lie in 1..{layer.depth - 1} for a model of "
                    f"{layer.depth} blocks, got {list(settings.blocks)}"
                )
            self.has_metric = layer.index in settings.blocks
        self.options = settings
        self.gradient_mode = settings.gradient_mode

    @property
    def skips_gradients(self) -> bool:
        """Whether this block has an estimated metric whose gradient is detached."""
        return self.has_metric and super().skips_gradients

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Stretch the queries by the metric; pass this block's values on."""
        query = inputs.query
        scale = query.shape[-1] ** -0.5
        following = {"values": inputs.value}
        if self.has_metric:
            metric = self._metric(inputs, state["values"])
            following["metric"] = metric
            stretch = metric if metric.ndim == query.ndim else metric.unsqueeze(-2)
            query = query * stretch.to(query.dtype)
            scale = 1.0 if self.options.scale == "none" else scale
        return Lifted(query, inputs.key, inputs.value, scale, causal=inputs.causal), following

    def _metric(self, inputs: HeadInputs, previous_value: Tensor) -> Tensor:
        options = self.options
        if options.metric == "identity":
            return torch.ones_like(inputs.value[:, :, 0])
        if options.metric == "random":
            return self._random_metric(inputs)
        metric = estimate_metric(
            inputs.value,
            previous_value,
            scaling=options.scaling,
            statistic=options.statistic,
            delta=options.delta,
            scope=options.metric_scope,
            gradient_mode=self.gradient_mode,
        )
        if options.metric == "constant":
            return metric.mean(dim=-1, keepdim=True).expand_as(metric)
        return metric

    def _random_metric(self, inputs: HeadInputs) -> Tensor:
        batch, heads, _, head_dim = inputs.value.shape
        keys: Sequence[int] = [0] * batch
        if inputs.sample_keys is not None:
            keys = inputs.sample_keys.tolist()
        draws = keyed_uniform(
            self.options.random_seed, "metric", keys, (heads, head_dim), self.layer.index
        )
        floor = self.options.random_floor
        spread = floor + (1 - floor) * torch.from_numpy(draws).to(inputs.value.device)
        return _scale(spread, self.options.scaling)


def estimate_metric(
    value: Tensor,
    previous_value: Tensor,
    *,
    scaling: Scaling = "max",
    statistic: Statistic = "mean",
    delta: float = 1.0,
    scope: Scope = "window",
    gradient_mode: GradientMode = "detached",
) -> Tensor:
    """Estimate the diagonal metric of each sample and head.

    r_d = statistic over tokens of abs(value_d - previous_value_d) / delta (equation 10), scaled by
    its maximum or mean over the head's coordinates (Remark 3). Where the values did not move at
    all, r is 0 everywhere and the metric falls back to 1.

    Parameters
    ----------
    value, previous_value
        Values of this block and of the previous one, shape (batch, heads, tokens, head_dim).
    scaling, statistic, delta, scope
        See `EllipticalSettings`; the median has no prefix scope.
    gradient_mode
        ``"detached"``: no gradient flows through the metric, as published; ``"through"``: the
        subgradient of the formula flows.

    Returns
    -------
    Tensor
        Shape (batch, heads, head_dim), or (batch, heads, tokens, head_dim) for the prefix scope;
        float32, or float64 for float64 values, also under autocast.
    """
    if gradient_mode == "detached":
        value, previous_value = value.detach(), previous_value.detach()
    precision = torch.promote_types(value.dtype, torch.float32)
    with torch.autocast(device_type=value.device.type, enabled=False):
        movement = (value.to(precision) - previous_value.to(precision)).abs()
        if scope == "prefix":
            counts = torch.arange(1, movement.shape[-2] + 1, device=movement.device)
            averaged = movement.cumsum(dim=-2) / counts.unsqueeze(-1)
        elif statistic == "median":
            averaged = movement.median(dim=-2)[0]
        else:
            averaged = movement.mean(dim=-2)
        return _scale(averaged / delta, scaling)


def _scale(spread: Tensor, scaling: Scaling) -> Tensor:
    """Scale over the last dimension; all-zero rows become 1."""
    largest = spread.amax(dim=-1, keepdim=True)
    still = largest == 0
    if scaling == "max":
        unit = largest
    elif scaling == "mean":
        unit = spread.mean(dim=-1, keepdim=True)
    else:
        unit = torch.ones_like(largest)
    safe = torch.where(still, torch.ones_like(unit), unit)
    return torch.where(still, torch.ones_like(spread), spread / safe)


MECHANISMS.add("elliptical", EllipticalAttention)

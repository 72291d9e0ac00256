"""Attention by the median of means (MoM).

Humbert et al., ICML 2022, in attention: Han et al., NeurIPS 2023 (arXiv 2210.05794).
Split the keys into blocks. For query i the density of block b is the mean of
K_ij = exp(-c |q_i - k_j|^2) over its keys; take the block whose density is the median of those of
the blocks, and attend inside it. Fewer than half of the blocks corrupted can't move that density
past those of clean blocks. The choice is piecewise constant: its gradient is 0
wherever it has one, so there is nothing to detach and no `gradient_mode`. Attacks that use no
gradients see it.

By default the blocks are a partition, drawn once from `seed` for each layer, which is part of the
settings and not of the state dict. Any R tokens in a row from a multiple of R on are in R different
blocks, so a prefix is split evenly too. Under a causal mask densities are over keys up to the query
and blocks without any are left out of the median. An even number of blocks has two medians:
`median` picks.

The released vision models do something else: the "blocks" are overlapping random subsets that hold
a share 1 - outlier_fraction of the keys, drawn anew in every forward, also in evaluation, and one
block, of the median sum of log K, serves the whole batch. Settings `mode`, `scope`, `median` give
that, but for the draws: these are fixed, or with `draw` each sample's own and repeatable. A model
trained in one mode is not valid in another. The released language model masks queries where it
means keys and has no counterpart here.
"""

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import keyed_generator
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    LayerShape,
    Lifted,
    State,
)
from robustbench_elliptical.models.attention.gaussian_kernel import (
    KernelSettings,
    coefficient_of,
    kernel_attention,
    kernel_keys,
)
from robustbench_elliptical.models.attention.shared import precise

__all__ = ["MedianOfMeansAttention", "MedianOfMeansSettings"]


class MedianOfMeansSettings(KernelSettings):
    """Settings of median-of-means attention, as a card states them."""

    blocks: int = Field(default=5, ge=1)
    """Number of blocks; 1 in mode partition: all keys."""
    mode: Literal["partition", "subsample"] = "partition"
    """Blocks that share no key, or overlapping random subsets (released vision models)."""
    outlier_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Share of the keys that each subset leaves out; in mode subsample."""
    scope: Literal["query", "head", "released-batch"] = "query"
    """What has a median block of its own: each query, or by the mean of log K over queries each
    head of a sample, or the whole batch (released; couples its samples)."""
    median: Literal["lower", "upper"] = "lower"
    """Which of two middle blocks is taken (released: upper)."""
    draw: Literal["fixed", "per-sample"] = "fixed"
    """Whether all samples have the same blocks, or each its own, drawn from its key."""
    include_self: bool = False
    """Whether a token may always attend to itself."""
    seed: int = Field(default=0, ge=0)
    """Seed of the blocks."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say what the choice of a block depends on, if there are different ones at all."""
        partition = self.mode == "partition"
        drawn = self.blocks > 1 if partition else self.outlier_fraction > 0
        coupled = drawn and self.blocks > 1 and self.scope == "released-batch"
        return replace(
            summary,
            causal="exact" if self.scope == "query" else "no",
            stochastic=drawn and self.draw == "per-sample",
            batch_coupled=coupled,
        )


class MedianOfMeansAttention(AttentionMechanism):
    """softmax(-c |q - k|^2) v over the keys of the median block."""

    capabilities = Capabilities(
        causal="with-settings", stochastic="with-settings", batch_coupled="with-settings"
    )
    Settings = MedianOfMeansSettings
    draws: Tensor

    def __init__(self, layer: LayerShape, settings: MedianOfMeansSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        # Plain attention's state dict loads: the draws follow from the settings.
        self.register_buffer("draws", self._draw(layer.num_tokens), persistent=False)

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Mask all keys but those of the median block."""
        normalize = self.options.normalize_keys
        key = kernel_keys(inputs.key, normalize=normalize)
        mask = self.median_block(inputs)
        lifted = kernel_attention(
            inputs.query,
            key,
            inputs.value,
            coefficient_of(self.options.coefficient, inputs.query.shape[-1]),
            unit_keys=normalize,
            mask=mask,
        )
        return lifted, state

    @torch.no_grad()
    def median_block(self, inputs: HeadInputs) -> Tensor:
        """Return which keys each query attends to, boolean, (batch, heads, queries, keys)."""
        scope = self.options.scope
        if inputs.causal and scope != "query":
            raise UsageError(f"attention mom has no causal form with scope {scope}; use query")
        query = precise(inputs.query)
        key = kernel_keys(precise(inputs.key), normalize=self.options.normalize_keys)
        coefficient = coefficient_of(self.options.coefficient, query.shape[-1])
        with torch.autocast(device_type=query.device.type, enabled=False):
            log_kernel = coefficient * (
                2 * query @ key.transpose(-2, -1) - key.square().sum(-1).unsqueeze(-2)
            )
        members = self.members(inputs)
        rank = torch.stack(
            [_level(log_kernel, block, scope) for block in members.unbind(1)], dim=-1
        )
        filled = (rank < torch.inf).sum(dim=-1, keepdim=True)
        middle = (filled - 1) // 2 if self.options.median == "lower" else filled // 2
        chosen = rank.argsort(dim=-1, stable=True).gather(-1, middle)
        mask = torch.zeros_like(log_kernel, dtype=torch.bool)
        for number, block in enumerate(members.unbind(1)):
            mask = mask | ((chosen == number) & block.unsqueeze(1))
        if self.options.include_self:
            mask = mask | torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
        return mask

    def members(self, inputs: HeadInputs) -> Tensor:
        """Return the blocks' keys, boolean, (batch or 1, blocks, queries or 1, keys)."""
        count = inputs.query.shape[-2]
        draws = self._draws(inputs, count)
        up_to = torch.ones(count, count, dtype=torch.bool, device=draws.device).tril()
        if self.options.mode == "partition":
            numbers = torch.arange(self.options.blocks, device=draws.device)
            within = (draws.unsqueeze(1) == numbers.view(-1, 1)).unsqueeze(-2)
            return within & up_to if inputs.causal else within
        share = 1 - self.options.outlier_fraction
        scores = draws.transpose(1, 2)
        smaller = scores.unsqueeze(-1) < scores.unsqueeze(-2)
        if not inputs.causal:
            return smaller.sum(dim=-2, keepdim=True) < max(1, int(count * share))
        sizes = [[max(1, int(length * share))] for length in range(1, count + 1)]
        before = smaller.cumsum(dim=-2)
        return (before < torch.tensor(sizes, device=draws.device)) & up_to

    def _draws(self, inputs: HeadInputs, count: int) -> Tensor:
        """Return the draws for so many tokens, shape (batch or 1, tokens, ...)."""
        device = inputs.query.device
        if self.options.draw == "per-sample":
            keys = [0] * len(inputs.query)
            if inputs.sample_keys is not None:
                keys = inputs.sample_keys.tolist()
            return torch.stack([self._draw(count, key) for key in keys]).to(device)
        if count <= len(self.draws):
            return self.draws[:count].unsqueeze(0)
        return self._draw(count).unsqueeze(0).to(device)

    def _draw(self, count: int, *words: int) -> Tensor:
        """Draw block numbers (partition) or scores for each block; a prefix of any longer draw."""
        stream = f"mom/{self.options.mode}"
        generator = keyed_generator(self.options.seed, stream, self.layer.index, *words)
        blocks = self.options.blocks
        if self.options.mode == "subsample":
            return torch.from_numpy(generator.integers(0, 1 << 62, (count, blocks)))
        rounds = generator.random((-(-count // blocks), blocks)).argsort(axis=1)
        return torch.from_numpy(rounds.ravel()[:count].copy())


def _level(log_kernel: Tensor, block: Tensor, scope: str) -> Tensor:
    """Return what the block's density ranks by, (batch or 1, heads or 1, queries or 1).

    inf where a query has no key in the block.
    """
    block = block.unsqueeze(1)
    sizes = block.sum(dim=-1)
    if scope == "query":
        level = log_kernel.masked_fill(~block, float("-inf")).logsumexp(dim=-1) - sizes.log()
    else:
        over = (-2, -1) if scope == "head" else (0, 1, -2, -1)
        inside = log_kernel.masked_fill(~block, 0).mean(dim=-2, keepdim=True)
        level = inside.sum(dim=over, keepdim=True).squeeze(-1) / sizes
        if scope == "released-batch":
            level = level[:1]
    return torch.where(sizes > 0, level, torch.inf)


MECHANISMS.add("mom", MedianOfMeansAttention)

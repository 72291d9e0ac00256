"""Reformer's LSH attention (Kitaev et al., ICLR 2020, arXiv 2001.04451, section 2).

Queries are their own keys, scaled to length 1; the block's key projection is not used. In each of
`hashes` rounds a token's bucket is the argmax of [x R; -x R] for a random matrix R. A token attends
to those of its bucket in its own or the previous chunk of `chunk` tokens, and to itself only if
nothing else is left. A pair met in several rounds counts once (the paper subtracts the logarithm
of the number of those rounds), so the rounds together are one softmax over the union of what they
allow.

Chunks. The published ones cut the list of tokens sorted by (bucket, position). Where a cut falls
then depends on how many tokens, later ones too, have smaller buckets: under a causal mask later
tokens change what an earlier one may attend to, a leak. Here each bucket is cut by itself, into
chunks of the same size, which is exactly causal; `chunks` restores the published cuts.

R is drawn once from `seed`, for each block, head and round, and kept in the state dict, so two
evaluations agree. Buckets are piecewise constant: gradients don't see a token change its bucket.
Computed as a mask over all pairs, without the cost of sorted chunks.
"""

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from robustbench_elliptical.core.randomness import keyed_generator
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.shared import offsets, precise

__all__ = ["ReformerAttention", "ReformerSettings"]


class ReformerSettings(MechanismSettings):
    """Settings of Reformer's attention, as a card states them."""

    hashes: int = Field(default=2, ge=1)
    """Number of hashing rounds."""
    buckets: int = Field(default=8, ge=1)
    """Number of buckets, even; 1: no hashing."""
    chunk: int = Field(default=64, ge=1)
    """Tokens of a chunk; a token attends to its own chunk and the one before."""
    chunks: Literal["per-bucket", "released-sorted"] = "per-bucket"
    """Cut each bucket by itself, or the tokens sorted by bucket, as published (under a causal mask
    the future then leaks)."""
    duplicates: Literal["once", "released-each-round"] = "once"
    """Whether a pair met in several rounds counts once (the paper) or that many times."""
    scale: Literal["sqrt", "none"] = "sqrt"
    """Factor of the logits: 1 / sqrt(head_dim), or 1 as in the released Long Range Arena models."""
    seed: int = Field(default=0, ge=0)
    """Seed of the random matrices."""

    @model_validator(mode="after")
    def _buckets_come_in_pairs(self) -> "ReformerSettings":
        if self.buckets > 1 and self.buckets % 2:
            raise ValueError(f"buckets must be even, or 1 for no hashing, got {self.buckets}")
        return self

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say that the published cuts of several buckets depend on later tokens."""
        sorts = self.chunks == "released-sorted" and self.buckets > 1
        return replace(summary, causal="leaks" if sorts else "exact")


class ReformerAttention(AttentionMechanism):
    """softmax(q k^T / sqrt(head_dim)) v with k = q / |q|, over a token's hash buckets."""

    capabilities = Capabilities(causal="with-settings")
    Settings = ReformerSettings
    rotations: Tensor

    def __init__(self, layer: LayerShape, settings: ReformerSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        shape = (settings.hashes, layer.num_heads, layer.head_dim, settings.buckets // 2)
        generator = keyed_generator(settings.seed, "reformer/rotations", layer.index)
        draws = torch.from_numpy(generator.standard_normal(shape)).float()
        self.register_buffer("rotations", draws)

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Normalise the queries to keys and mask what is in no common bucket."""
        query = inputs.query
        lengths = precise(query).square().mean(dim=-1, keepdim=True).add(1e-6).rsqrt()
        key = (precise(query) * lengths * query.shape[-1] ** -0.5).to(query.dtype)
        scale = query.shape[-1] ** -0.5 if self.options.scale == "sqrt" else 1.0
        rounds = self._rounds(query.detach())
        if inputs.causal:
            rounds = rounds & (offsets(query.shape[-2], query.device) >= 0)
        mask = _self_only_if_alone(rounds.any(dim=0))
        if self.options.duplicates == "released-each-round":
            times = rounds.sum(dim=0).to(query.dtype).log()
            mask = times.masked_fill(~mask, float("-inf"))
        return Lifted(query, key, inputs.value, scale, mask), state

    def buckets(self, query: Tensor) -> Tensor:
        """Return each token's bucket, shape (rounds, batch, heads, tokens), of queries."""
        if self.options.buckets == 1:
            return query.new_zeros((self.options.hashes, *query.shape[:-1]), dtype=torch.int64)
        with torch.autocast(device_type=query.device.type, enabled=False):
            vectors = precise(query)
            turned = vectors @ self.rotations.to(vectors.dtype).unsqueeze(1)
        return torch.cat([turned, -turned], dim=-1).argmax(dim=-1)

    def _rounds(self, query: Tensor) -> Tensor:
        """Return who may attend to whom in each round, (rounds, batch, heads, queries, keys)."""
        bucket = self.buckets(query)
        same = bucket.unsqueeze(-1) == bucket.unsqueeze(-2)
        place = same.tril().sum(dim=-1) - 1
        if self.options.chunks == "released-sorted":
            place = place + (bucket.unsqueeze(-2) < bucket.unsqueeze(-1)).sum(dim=-1)
        chunk = place // self.options.chunk
        back = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)
        # Without a causal mask a token also meets its whole own chunk, later tokens included.
        return same & ((back == 0) | (back == 1))


def _self_only_if_alone(allowed: Tensor) -> Tensor:
    """Take the diagonal out of a mask (..., tokens, tokens) wherever a row has anything else."""
    diagonal = torch.eye(allowed.shape[-1], dtype=torch.bool, device=allowed.device)
    others = allowed & ~diagonal
    return others | (diagonal & ~others.any(dim=-1, keepdim=True))


MECHANISMS.add("reformer", ReformerAttention)

"""Mechanisms against the least that their formula needs, written out by hand."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from benchmarks.rows import Row, Size
from benchmarks.timing import compare
from robustbench_elliptical.models.attention import (
    AttentionMechanism,
    HeadInputs,
    LayerShape,
    build_mechanism,
)

__all__ = ["FORMULAS", "formula_floor"]

DIM, HEADS, TOKENS, BATCH = 192, 3, 197, 2
TARGET = 1.3

Formula = Callable[[Any, HeadInputs], Tensor]
"""Returns what the mechanism returns, shape (batch, heads, tokens, head_dim)."""


def _kde(_: Any, inputs: HeadInputs) -> Tensor:
    keys = functional.normalize(inputs.key, dim=-1)
    scale = 2 * inputs.query.shape[-1] ** -0.5
    return functional.scaled_dot_product_attention(inputs.query, keys, inputs.value, scale=scale)


def _gated(mechanism: Any, inputs: HeadInputs) -> Tensor:
    gates = mechanism.gate(inputs.tokens).sigmoid().unflatten(-1, (HEADS, -1)).transpose(1, 2)
    attended = functional.scaled_dot_product_attention(inputs.query, inputs.key, inputs.value)
    return torch.mul(gates, attended)


def _energy_gated(mechanism: Any, inputs: HeadInputs) -> Tensor:
    energy = mechanism.energy(inputs.tokens)
    gates = (mechanism.log_sharpness.exp() * (energy - mechanism.threshold)).sigmoid()
    value = gates.transpose(1, 2).unsqueeze(-1) * inputs.value
    return functional.scaled_dot_product_attention(inputs.query, inputs.key, value)


def _linformer(mechanism: Any, inputs: HeadInputs) -> Tensor:
    keys = mechanism.key_projection @ inputs.key
    values = mechanism.value_projection @ inputs.value
    return functional.scaled_dot_product_attention(inputs.query, keys, values)


def _mgk(mechanism: Any, inputs: HeadInputs) -> Tensor:
    further = mechanism.further_keys(inputs.tokens).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    query, parts = inputs.query, []
    slope = mechanism.coefficients[0]
    for rate, key, share in zip(
        mechanism.coefficients, (inputs.key, further), mechanism.pi, strict=True
    ):
        bias = share.log().unsqueeze(-1) - rate * key.square().sum(-1, keepdim=True)
        parts.append(torch.cat([2 * rate * key, torch.full_like(bias, slope - rate), bias], -1))
    lengths = query.square().sum(-1, keepdim=True)
    stretched = torch.cat([query, lengths, torch.ones_like(lengths)], -1)
    keys, values = torch.cat(parts, -2), torch.cat([inputs.value] * 2, -2)
    return functional.scaled_dot_product_attention(stretched, keys, values, scale=1.0)


FORMULAS: dict[str, Formula] = {
    "kde": _kde,
    "gated": _gated,
    "energy_gated": _energy_gated,
    "linformer": _linformer,
    "mgk": _mgk,
}


def formula_floor(size: Size) -> list[Row]:
    """Compare each mechanism with its formula, forward and forward with backward."""
    rows = []
    for name, formula in FORMULAS.items():
        torch.manual_seed(0)
        shape = LayerShape(DIM, HEADS, DIM // HEADS, index=0, depth=1, num_tokens=TOKENS)
        mechanism = build_mechanism(name, shape, {}).eval()
        query, key, value = torch.randn(3, BATCH, HEADS, TOKENS, DIM // HEADS)
        inputs = HeadInputs(query, key, value, torch.randn(BATCH, TOKENS, DIM))
        ours, floor = _passes(mechanism, formula, inputs)
        torch.testing.assert_close(ours(), floor(), rtol=1e-3, atol=1e-4)
        for what, backward in (("forward", False), ("forward and backward", True)):
            one, other = (_pass(each, inputs, backward=backward) for each in (ours, floor))
            ratio = compare(one, other, size.budget)
            measured = f"{what} of {name}, {TOKENS} tokens, projections aside"
            rows.append(
                Row("formulas", measured, "its formula by hand", ratio, TARGET, BATCH, "samples")
            )
    return rows


def _passes(
    mechanism: AttentionMechanism, formula: Formula, inputs: HeadInputs
) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    return lambda: mechanism(inputs, {})[0], lambda: formula(mechanism, inputs)


def _pass(
    computation: Callable[[], Tensor], inputs: HeadInputs, *, backward: bool
) -> Callable[[], object]:
    def run() -> object:
        if not backward:
            with torch.no_grad():
                return computation()
        for each in inputs[:4]:
            each.requires_grad_().grad = None
        return computation().sum().backward()  # type: ignore[no-untyped-call]

    return run

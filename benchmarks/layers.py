"""One attention layer of DeiT-tiny's width with any mechanism, and its passes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import LayerShape, State, build_mechanism
from robustbench_elliptical.models.backbones.vision_transformer import MechanismAttention

__all__ = ["Layer", "attend", "build_layer"]

DIM, HEADS, BATCH = 192, 3, 2

SETTINGS: dict[str, dict[str, Any]] = {
    "elliptical": {"scaling": "max"},
    "neighborhood": {"layout": "sequence"},
}
"""Settings that a mechanism has no default for, or none that fits every number of tokens."""
CAUSAL_SETTINGS: dict[str, dict[str, Any]] = {
    "elliptical": {"scaling": "max", "metric_scope": "prefix"},
    "longformer": {"global_tokens": ()},
}
"""The same for a causal layer."""


class Layer:
    """An attention layer with its projections, on fixed random tokens.

    Parameters
    ----------
    attention
        The layer.
    state
        What the layer before it handed on.
    tokens
        Shape (batch, tokens, dim).
    causal
        Whether tokens may only attend to earlier ones.
    """

    def __init__(
        self, attention: MechanismAttention, state: State, tokens: Tensor, *, causal: bool
    ) -> None:
        self._attention = attention
        self._state = state
        self._tokens = tokens
        self._causal = causal

    def forward(self) -> Tensor:
        """Attend without gradients."""
        with torch.no_grad():
            return attend(self._attention, self._tokens, self._state, causal=self._causal)[0]

    def forward_backward(self) -> tuple[Tensor | None, ...]:
        """Attend, and get the gradients of the tokens and of the weights."""
        tokens = self._tokens.detach().requires_grad_()
        output, _ = attend(self._attention, tokens, self._state, causal=self._causal)
        wanted = [tokens, *self._attention.parameters()]
        return torch.autograd.grad(output.sum(), wanted, allow_unused=True)


def attend(
    attention: MechanismAttention, tokens: Tensor, state: State, *, causal: bool
) -> tuple[Tensor, State]:
    """Return the layer's output, shape (batch, tokens, dim), and what it hands on."""
    inputs = attention.head_inputs(tokens, torch.arange(len(tokens)))._replace(causal=causal)
    heads, state = attention.mechanism(inputs, state)
    return attention.merge_heads(heads), state


def build_layer(name: str, count: int, *, causal: bool = False) -> Layer | None:
    """Return the second of two layers; the weights of every mechanism start from one seed.

    Parameters
    ----------
    name
        Registered name of the mechanism.
    count
        Number of tokens.
    causal
        Whether tokens may only attend to earlier ones.

    Returns
    -------
    Layer or None
        None where the mechanism can't be causal.
    """
    settings = (CAUSAL_SETTINGS if causal else {}).get(name, SETTINGS.get(name, {}))
    torch.manual_seed(0)
    first, second = (_attention(name, index, count, settings) for index in (0, 1))
    tokens, earlier = torch.randn(2, BATCH, count, DIM)
    try:
        with torch.no_grad():
            _, state = attend(first, earlier, {}, causal=causal)
    except UsageError:
        if causal:
            return None
        raise
    return Layer(second, state, tokens, causal=causal)


def _attention(
    name: str, index: int, count: int, settings: Mapping[str, Any]
) -> MechanismAttention:
    attention = MechanismAttention(DIM, num_heads=HEADS, qkv_bias=True)
    shape = LayerShape(DIM, HEADS, DIM // HEADS, index=index, depth=2, num_tokens=count)
    attention.mechanism = build_mechanism(name, shape, settings)
    attention.eval()
    return attention

"""Inputs for a block, and what every mechanism of this folder promises, checked by one call."""

from collections.abc import Callable

import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import HeadInputs, LayerShape, build_mechanism

HEADS, HEAD_DIM = 2, 4


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def block() -> Callable[..., LayerShape]:
    """The shape of a block with 2 heads of 4, by default the second of three, for 10 tokens."""

    def make(num_tokens: int = 10, index: int = 1, depth: int = 3) -> LayerShape:
        return LayerShape(HEADS * HEAD_DIM, HEADS, HEAD_DIM, index, depth, num_tokens)

    return make


@pytest.fixture
def make_inputs() -> Callable[..., HeadInputs]:
    def make(
        tokens: int = 10,
        batch: int = 2,
        dtype: torch.dtype = torch.float64,
        seed: int = 0,
        *,
        causal: bool = False,
    ) -> HeadInputs:
        generator = torch.Generator().manual_seed(seed)
        shape = (batch, HEADS, tokens, HEAD_DIM)
        query, key, value = (
            torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)
        )
        flat = torch.randn(batch, tokens, HEADS * HEAD_DIM, generator=generator).double()
        keys = torch.arange(100, 100 + batch)
        given = (each.to(dtype) for each in (query, key, value, flat))
        return HeadInputs(*given, causal=causal, sample_keys=keys)

    return make


@pytest.fixture
def build(block):
    """Build a mechanism in float64 whose parameters are far from their start, unless told not."""

    def make(name, settings=None, *, noise=0.5, num_tokens=10, index=1, depth=3):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            layer = block(num_tokens, index, depth)
            mechanism = build_mechanism(name, layer, settings or {}).double()
            with torch.no_grad():
                for parameter in mechanism.parameters():
                    parameter.add_(noise * torch.randn_like(parameter))
        return mechanism

    return make


@pytest.fixture
def softmax_output():
    """Plain attention written out."""

    def attend(inputs: HeadInputs, scale: float | None = None) -> torch.Tensor:
        logits = inputs.query @ inputs.key.transpose(-2, -1)
        logits = logits * (scale if scale is not None else inputs.query.shape[-1] ** -0.5)
        if inputs.causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1) > 0, -torch.inf)
        return logits.softmax(-1) @ inputs.value

    return attend


@pytest.fixture
def keeps_the_contract(build, make_inputs):
    """Check what holds for every mechanism, with these settings."""

    def check(name, settings=None, *, causal=True, rows=True, linear=True):
        mechanism = build(name, settings)
        _paths_agree(mechanism, make_inputs, causal, rows=rows, linear=linear)
        _a_sample_is_alone(mechanism, make_inputs())
        _gradients_are_right(mechanism, make_inputs(tokens=10, batch=1))
        _stays_finite(mechanism, make_inputs)
        twin = build(name, settings, noise=0.1)
        twin.load_state_dict(mechanism.state_dict())
        assert torch.equal(twin(make_inputs(), {})[0], mechanism(make_inputs(), {})[0])
        if causal:
            _hides_the_future(mechanism, make_inputs)
        else:
            for path in (mechanism, mechanism.explicit):
                with pytest.raises(UsageError, match="has no causal form"):
                    path(make_inputs(causal=True), {})

    return check


def _paths_agree(mechanism, make_inputs, causal, *, rows, linear):
    for flag in {False, causal}:
        inputs = make_inputs(causal=flag)
        output, weights, _ = mechanism.explicit(inputs, {})
        assert torch.allclose(output, mechanism(inputs, {})[0], atol=1e-10)
        assert weights.shape == (2, HEADS, 10, 10)
        if linear:
            assert torch.allclose(weights @ inputs.value, output, atol=1e-10)
        if rows:
            assert torch.allclose(weights.sum(-1), torch.ones(2, HEADS, 10).double(), atol=1e-12)
            assert bool((weights >= 0).all())
    assert mechanism.flags.row_stochastic == rows


def _a_sample_is_alone(mechanism, inputs):
    together = mechanism(inputs, {})[0]
    for row in range(2):
        tensors = (each[row : row + 1] for each in inputs[:4])
        alone = HeadInputs(*tensors, sample_keys=inputs.sample_keys[row : row + 1])
        assert torch.allclose(mechanism(alone, {})[0][0], together[row], rtol=0, atol=1e-12)


def _gradients_are_right(mechanism, inputs):
    leaves = [each.clone().requires_grad_() for each in inputs[:4]]
    generator = torch.Generator().manual_seed(5)
    # One direction a tensor, against central differences.
    directions = [
        torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in leaves
    ]
    weight = torch.randn(inputs.value.shape, generator=generator, dtype=torch.float64)

    def loss(*tensors):
        return (mechanism(inputs._replace(**_named(tensors)), {})[0] * weight).sum()

    gradients = torch.autograd.grad(loss(*leaves), leaves, allow_unused=True)
    step = 1e-6
    for place, (gradient, direction) in enumerate(zip(gradients, directions, strict=True)):
        with torch.no_grad():
            ends = []
            for sign in (1, -1):
                moved = [each.detach().clone() for each in leaves]
                moved[place] += sign * step * direction
                ends.append(loss(*moved))
        slope = float((ends[0] - ends[1]) / (2 * step))
        actual = 0.0 if gradient is None else float((gradient * direction).sum())
        assert actual == pytest.approx(slope, rel=1e-5, abs=1e-6)


def _named(tensors):
    return dict(zip(("query", "key", "value", "tokens"), tensors, strict=True))


def _stays_finite(mechanism, make_inputs):
    """On one token, constant tokens, zeros and huge logits; in float32 and bfloat16."""
    for dtype in (torch.float32, torch.bfloat16):
        plain = make_inputs(dtype=dtype)
        constant = plain._replace(
            **{
                name: getattr(plain, name)[..., :1, :].expand_as(getattr(plain, name))
                for name in _NAMES
            }
        )
        zero = plain._replace(**{name: getattr(plain, name) * 0 for name in _NAMES})
        huge = plain._replace(query=plain.query * 1e4, key=plain.key * 1e4)
        for inputs in (make_inputs(tokens=1, dtype=dtype), plain, constant, zero, huge):
            leaves = [each.clone().requires_grad_() for each in inputs[:4]]
            output = mechanism(inputs._replace(**_named(leaves)), {})[0]
            assert output.dtype == dtype
            assert output.shape == inputs.value.shape
            gradients = torch.autograd.grad(output.float().sum(), leaves, allow_unused=True)
            for each in (output, *gradients):
                assert each is None or bool(each.isfinite().all())


_NAMES = ("query", "key", "value", "tokens")


def _hides_the_future(mechanism, make_inputs):
    inputs = make_inputs(causal=True)
    for place in (1, 6, 9):
        tensors = [each.clone() for each in inputs[:4]]
        for each in tensors:
            each[..., place:, :] = 3 - 2 * each[..., place:, :]
        changed = inputs._replace(**_named(tensors))
        for path in (mechanism, mechanism.explicit):
            before = path(inputs, {})[0][:, :, :place]
            assert torch.allclose(path(changed, {})[0][:, :, :place], before, rtol=0, atol=1e-13)

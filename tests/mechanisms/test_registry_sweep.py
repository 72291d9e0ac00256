"""What every registered mechanism promises, whatever it is: a new one is enrolled by its name."""

from functools import cache

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import AttentionChoice
from robustbench_elliptical.models.attention import (
    MECHANISMS,
    HeadInputs,
    LayerShape,
    build_mechanism,
    capabilities_of,
)
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model

# Sizes that make a mechanism do something on few tokens; settings that it needs or is causal with.
SETTINGS = {
    "elliptical": {"scaling": "max", "metric_scope": "prefix"},
    "lightning": {"block": 4},
    "linformer": {"slots": 3},
    "longformer": {"window": 4},
    "mom": {"blocks": 3},
    "neighborhood": {"kernel": 3, "layout": "sequence"},
    "nystromformer": {"landmarks": 3, "convolution": 3},
    "performer": {"features": 16},
    "primal": {"rank": 2},
    "reformer": {"buckets": 2, "chunk": 2},
    "spkde": {"iterations": 4},
}
NAMES = sorted(MECHANISMS)
CAUSAL = [name for name in NAMES if capabilities_of(name, SETTINGS.get(name, {})).causal == "exact"]
LAYER = LayerShape(dim=8, num_heads=2, head_dim=4, index=1, depth=3, num_tokens=8)
SIZES = {"layers": 2, "d_model": 8, "num_heads": 2, "d_head": 4, "d_inner": 8}
DECODER = DecoderArchitecture(vocab_size=12, context_length=8, **SIZES)
FIELDS = ("query", "key", "value", "tokens")


@cache
def build(name):
    """Build it in float64, its parameters away from their start, gradients through everything."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        mechanism = build_mechanism(name, LAYER, SETTINGS.get(name, {})).double().eval()
        with torch.no_grad():
            for parameter in mechanism.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    mechanism.gradient_mode = "through"
    return mechanism


def make_inputs(tokens=8, batch=2, dtype=torch.float64, *, causal=False):
    """Return inputs and a state that holds what any mechanism may look for."""
    generator = torch.Generator().manual_seed(0)
    shape = (batch, 2, tokens, 4)
    query, key, value, previous = (
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for _ in range(4)
    )
    flat = torch.randn(batch, tokens, 8, generator=generator, dtype=torch.float64).to(dtype)
    keys = torch.arange(5, 5 + batch)
    return HeadInputs(query, key, value, flat, causal, keys), {"values": previous}


def changed(inputs, state, change):
    fields = {name: change(getattr(inputs, name)) for name in FIELDS}
    return inputs._replace(**fields), {name: change(each) for name, each in state.items()}


@pytest.mark.parametrize("name", NAMES)
def test_fused_equals_explicit_and_rows_are_what_the_capability_says(name):
    mechanism = build(name)
    for causal in {False, name in CAUSAL}:
        inputs, state = make_inputs(causal=causal)
        output, weights, _ = mechanism.explicit(inputs, state)
        assert torch.allclose(mechanism(inputs, state)[0], output, atol=1e-11)
        assert weights.shape == (2, 2, 8, 8)
        distributions = torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]))
        distributions &= bool((weights >= 0).all())
        assert distributions == mechanism.flags.row_stochastic


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    """Of every input, against finite differences, on few tokens."""
    mechanism = build(name)
    inputs, state = make_inputs(tokens=3, batch=1)
    leaves = [getattr(inputs, field).clone().requires_grad_() for field in FIELDS]
    leaves.append(state["values"].clone().requires_grad_())

    def attend(*tensors):
        given = inputs._replace(**dict(zip(FIELDS, tensors, strict=False)))
        return mechanism(given, {"values": tensors[4]})[0][:, :, 1:, :2]

    assert torch.autograd.gradcheck(attend, leaves, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_stays_finite(name, dtype):
    """One token, constant tokens, zeros, large and very large logits; output and gradients."""
    mechanism = build(name)
    plain = make_inputs(dtype=dtype)
    cases = {
        "one token": make_inputs(tokens=1, dtype=dtype),
        "constant": changed(*plain, lambda each: each[..., :1, :].expand_as(each)),
        "zero": changed(*plain, torch.zeros_like),
        "large": changed(*plain, lambda each: 30 * each),
        "very large": changed(*plain, lambda each: 3000 * each),
    }
    for case, (inputs, state) in cases.items():
        for causal in {False, name in CAUSAL}:
            leaves = [getattr(inputs, field).clone().requires_grad_() for field in FIELDS]
            given = inputs._replace(causal=causal, **dict(zip(FIELDS, leaves, strict=True)))
            output, _ = mechanism(given, state)
            assert output.dtype == dtype
            assert output.shape == inputs.value.shape
            grads = torch.autograd.grad(output.float().sum(), leaves, allow_unused=True)
            for each in (output, *grads):
                assert each is None or bool(each.isfinite().all()), case


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_is_close_to_float64(name):
    """On the same rounded inputs; the last digit of bfloat16 is worth 0.4 %."""
    mechanism = build(name)
    for causal in {False, name in CAUSAL}:
        low, low_state = make_inputs(dtype=torch.bfloat16, causal=causal)
        exact, exact_state = changed(low, low_state, torch.Tensor.double)
        expected = mechanism(exact, exact_state)[0]
        for path in (mechanism, mechanism.explicit):
            error = (path(low, low_state)[0].double() - expected).norm() / expected.norm()
            assert float(error.detach()) < 0.03


@pytest.mark.parametrize("name", NAMES)
def test_autocast_is_close_to_float32(name):
    mechanism = build(name)
    inputs, state = make_inputs(dtype=torch.float32)
    expected = mechanism(inputs, state)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = mechanism(inputs, state)[0]
    error = (output.float() - expected).norm() / expected.norm()
    assert float(error.detach()) < 0.03


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_on_the_device_of_the_inputs(name):
    """On an imagined GPU, where torch computes shapes and refuses tensors from elsewhere."""
    mechanism = build_mechanism(name, LAYER, SETTINGS.get(name, {}))
    with FakeTensorMode():
        for module in mechanism.modules():
            for key, tensor in module._parameters.items():
                module._parameters[key] = None if tensor is None else nn.Parameter(_moved(tensor))
            for key, tensor in module._buffers.items():
                module._buffers[key] = _moved(tensor)
        for causal in {False, name in CAUSAL}:
            inputs, state = changed(*make_inputs(dtype=torch.float32, causal=causal), _moved)
            output, _ = mechanism(inputs, state)
            assert output.device.type == "cuda"
        explicit = mechanism.explicit(inputs, state)
        assert {each.device.type for each in explicit[:2]} == {"cuda"}


def _moved(tensor):
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_alone_is_the_sample_in_a_batch(name):
    mechanism = build(name)
    for causal in {False, name in CAUSAL}:
        inputs, state = make_inputs(batch=3, causal=causal)
        together = mechanism(inputs, state)[0]
        for row in range(3):
            alone, alone_state = changed(inputs, state, lambda each, row=row: each[row : row + 1])
            alone = alone._replace(sample_keys=inputs.sample_keys[row : row + 1])
            output = mechanism(alone, alone_state)[0]
            assert torch.allclose(output[0], together[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_later_tokens_do_not_reach_earlier_outputs(name, size):
    mechanism = build(name)
    inputs, state = make_inputs(causal=True)
    for place in (1, 5, 7):

        def later(each, place=place):
            moved = each.clone()
            moved[..., place:, :] = size * (1 - each[..., place:, :].flip(-1))
            return moved

        other, other_state = changed(inputs, state, later)
        for path in (mechanism, mechanism.explicit):
            before, after = path(inputs, state)[0], path(other, other_state)[0]
            assert torch.allclose(after[:, :, :place], before[:, :, :place], rtol=0, atol=1e-10)
            assert not torch.allclose(after[:, :, place:], before[:, :, place:], atol=1e-3)


@pytest.mark.parametrize("name", CAUSAL)
def test_no_decoder_sees_the_future(name):
    """Across layers, which hand on their state."""
    settings = SETTINGS.get(name, {})
    if name == "elliptical":
        settings = {**settings, "scale": "sqrt"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        choice = AttentionChoice(mechanism=name, settings=settings)
        model = build_language_model(DECODER, choice).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
            tokens = torch.randint(0, 12, (2, 8))
            other = tokens.clone()
            other[:, 5:] = (other[:, 5:] + 5) % 12
            before, after = model(tokens), model(other)
    assert torch.allclose(after[:, :5], before[:, :5], rtol=0, atol=1e-11)
    assert not torch.allclose(after[:, 5:], before[:, 5:], atol=1e-3)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CAUSAL])
def test_those_without_a_causal_form_say_so(name):
    inputs, state = make_inputs(causal=True)
    for path in (build(name), build(name).explicit):
        with pytest.raises(UsageError, match=f"^attention {name} has no causal form; [^.]*$"):
            path(inputs, state)
    with pytest.raises(UsageError, match=f"attention {name} has no causal form"):
        build_language_model(DECODER, AttentionChoice(mechanism=name))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_dict_holds_all_there_is(name):
    mechanism = build(name)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        twin = build_mechanism(name, LAYER, SETTINGS.get(name, {})).double().eval()
    twin.load_state_dict(mechanism.state_dict())
    inputs, state = make_inputs()
    assert torch.equal(twin(inputs, state)[0], mechanism(inputs, state)[0])


@pytest.mark.parametrize("name", NAMES)
def test_forwards_repeat_and_leave_the_global_generator_alone(name):
    before = torch.random.get_rng_state()
    inputs, state = make_inputs()
    first = build(name)(inputs, state)[0]
    assert torch.equal(build(name)(inputs, state)[0], first)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert set(state) == {"values"}

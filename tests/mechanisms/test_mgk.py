import pytest
import torch
import torch.nn.functional as functional

from robustbench_elliptical.core.errors import UsageError


def by_definition(mechanism, inputs, eps=0.0):
    """Exponentials of distances, as written in the paper."""
    mixture = 0
    for number, key in enumerate(mechanism.component_keys(inputs)):
        variance = 2.0 / mechanism.options.sharpness[number]
        kernel = torch.exp(-torch.cdist(inputs.query, key).square() / (2 * variance))
        if mechanism.options.rule == "hard":
            mixture = kernel if number == 0 else torch.maximum(mixture, kernel)
        else:
            mixture = mixture + mechanism.pi[number].clamp(0, 1).unsqueeze(-2) * kernel
    if inputs.causal:
        mixture = mixture.tril()
    weights = mixture / (mixture.sum(-1, keepdim=True) + eps)
    return weights @ inputs.value, weights


def set_pi(mechanism, *values):
    with torch.no_grad():
        for number, value in enumerate(values):
            mechanism.pi[number] = value


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"key_mode": "shift"},
        {"rule": "hard"},
        {"rule": "hard", "key_mode": "shift"},
        {"pi_scope": "position", "key_bias": True},
        {"sharpness": [1, 3, 0.5]},
        {"sharpness": [2]},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("mgk", settings)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("eps_mode", ["none", "released"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"key_mode": "shift"},
        {"rule": "hard"},
        {"pi_scope": "position"},
        {"sharpness": [1, 3, 0.5], "key_mode": "shift"},
    ],
)
def test_the_definition(settings, eps_mode, causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    mechanism = build("mgk", {**settings, "eps_mode": eps_mode}, noise=0.2)
    eps = 1e-6 if eps_mode == "released" else 0.0
    output, weights = by_definition(mechanism, inputs, eps)
    explicit = mechanism.explicit(inputs, {})
    assert torch.allclose(mechanism(inputs, {})[0], output, atol=1e-12)
    assert torch.allclose(explicit.output, output, atol=1e-12)
    assert torch.allclose(explicit.weights, weights, atol=1e-12)


class TestOneComponent:
    def test_with_unit_keys_is_softmax(self, build, make_inputs, softmax_output):
        inputs = make_inputs()
        inputs = inputs._replace(key=functional.normalize(inputs.key, dim=-1))
        output = build("mgk", {"sharpness": [1]}, noise=0)(inputs, {})[0]
        assert torch.allclose(output, softmax_output(inputs), atol=1e-13)

    def test_with_raw_keys_has_their_length_as_a_bias(self, build, make_inputs, softmax_output):
        inputs = make_inputs()
        logits = (inputs.query @ inputs.key.mT - inputs.key.square().sum(-1).unsqueeze(-2) / 2) / 2
        output = build("mgk", {"sharpness": [1]}, noise=0)(inputs, {})[0]
        assert torch.allclose(output, logits.softmax(-1) @ inputs.value, atol=1e-13)
        assert not torch.allclose(output, softmax_output(inputs), atol=1e-2)

    def test_is_what_equal_components_are(self, build, make_inputs):
        inputs = make_inputs()
        two = build("mgk", {"key_mode": "shift", "sharpness": [1, 1]}, noise=0)
        with torch.no_grad():
            two.shifts.zero_()
        set_pi(two, 0.3, 0.7)
        one = build("mgk", {"sharpness": [1]}, noise=0)
        assert torch.allclose(two(inputs, {})[0], one(inputs, {})[0], atol=1e-13)


@pytest.mark.parametrize("far", [0.0, 40.0])
@pytest.mark.parametrize("key_mode", ["2keys", "shift"])
def test_a_component_without_weight_is_not_there(key_mode, far, build, make_inputs):
    """Also where the other lies far away, and with finite gradients."""
    inputs = make_inputs()
    inputs = inputs._replace(query=inputs.query + far)
    mechanism = build("mgk", {"key_mode": key_mode})
    set_pi(mechanism, 1, 0)
    with torch.no_grad():
        if key_mode == "shift":
            mechanism.shifts[0] = 0
    output = mechanism(inputs, {})[0]
    one = build("mgk", {"sharpness": [1]}, noise=0)(inputs, {})[0]
    assert torch.allclose(output, one, atol=1e-11)
    for gradient in torch.autograd.grad(output.square().sum(), list(mechanism.parameters())):
        assert bool(gradient.isfinite().all())


def test_no_weight_at_all_is_finite(build, make_inputs):
    mechanism = build("mgk")
    set_pi(mechanism, 0, -1)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert bool(mechanism(make_inputs(dtype=dtype), {})[0].isfinite().all())


def test_the_order_of_components_does_not_matter(build, make_inputs):
    inputs = make_inputs()
    one = build("mgk", {"key_mode": "shift", "sharpness": [1, 3]})
    other = build("mgk", {"key_mode": "shift", "sharpness": [3, 1]})
    with torch.no_grad():
        other.pi.copy_(one.pi.flip(0))
        other.shifts.copy_(one.shifts.flip(0))
    assert torch.allclose(other(inputs, {})[0], one(inputs, {})[0], atol=1e-12)


def test_released_row_sums_vanish_for_far_queries_and_these_do_not(build, make_inputs):
    inputs = make_inputs()
    inputs = inputs._replace(query=inputs.query + 20)
    rows = {
        mode: build("mgk", {"eps_mode": mode}, noise=0)
        .explicit(inputs, {})
        .weights.detach()
        .sum(-1)
        for mode in ("none", "released")
    }
    assert torch.allclose(rows["none"], torch.ones_like(rows["none"]))
    assert float(rows["released"].max()) < 1e-6


def test_parameters_and_their_start(build):
    two = build("mgk", {"key_mode": "2keys", "pi_scope": "position"}, noise=0)
    shapes = {name: tuple(each.shape) for name, each in two.named_parameters()}
    assert shapes == {"pi": (2, 2, 10), "further_keys.weight": (8, 8)}
    assert bool((two.pi == 0.5).all())
    shift = build("mgk", {"key_mode": "shift"}, noise=0, num_tokens=500)
    assert bool((shift.shifts[0] == 0).all() & (shift.shifts[1] != 0).all())
    assert "pi" not in build("mgk", {"rule": "hard"}).state_dict()


def test_the_second_keys_are_a_projection_of_the_blocks_input(build, make_inputs):
    inputs, mechanism = make_inputs(), build("mgk", {"key_bias": True})
    first, second = mechanism.component_keys(inputs)
    assert torch.equal(first, inputs.key)
    projected = mechanism.further_keys(inputs.tokens).unflatten(-1, (2, 4)).transpose(1, 2)
    assert torch.allclose(second, projected)


def test_weights_by_position_refuse_longer_inputs(build, make_inputs):
    mechanism = build("mgk", {"pi_scope": "position"})
    with pytest.raises(UsageError, match="built for at most 10 tokens, got 11"):
        mechanism(make_inputs(tokens=11), {})
    assert mechanism(make_inputs(tokens=4), {})[0].shape == (2, 2, 4, 4)
    assert build("mgk")(make_inputs(tokens=11), {})[0].shape == (2, 2, 11, 4)


def test_bad_settings(build):
    with pytest.raises(UsageError, match="input should be greater than 0"):
        build("mgk", {"sharpness": [1, 0]})

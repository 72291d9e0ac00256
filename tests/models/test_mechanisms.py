"""What every registered attention mechanism promises, and what Elliptical Attention is."""

import numpy as np
import pytest
import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.models.attention import (
    HeadInputs,
    LayerShape,
    build_mechanism,
    estimate_metric,
)

# Settings to test mechanisms with that permute with their tokens; others: tests/mechanisms.
SETTINGS = {
    "softmax": [{}],
    "elliptical": [
        {"scaling": scaling, "statistic": statistic, "metric": metric}
        for scaling, statistic, metric in [
            ("max", "mean", "estimated"),
            ("mean", "mean", "estimated"),
            ("none", "median", "estimated"),
            ("max", "mean", "identity"),
            ("max", "mean", "constant"),
            ("max", "mean", "random"),
        ]
    ],
}
CASES = [
    pytest.param(name, settings, id="-".join([name, *settings.values()]))
    for name in SETTINGS
    for settings in SETTINGS[name]
]
LAYER = LayerShape(dim=24, num_heads=3, head_dim=8, index=1, depth=3, num_tokens=7)
ELLIPTICAL = {"scaling": "max"}
RANDOM = {**ELLIPTICAL, "metric": "random"}


def make_inputs(seed=0, batch=3, tokens=7, dtype=torch.float64) -> tuple[HeadInputs, dict]:
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, LAYER.num_heads, tokens, LAYER.head_dim)
    query, key, value, previous = (
        torch.randn(shape, generator=generator, dtype=dtype) for _ in range(4)
    )
    flat = torch.randn(batch, tokens, LAYER.dim, generator=generator, dtype=dtype)
    keys = torch.arange(100, 100 + batch)
    return HeadInputs(query, key, value, flat, sample_keys=keys), {"values": previous}


def rows(inputs: HeadInputs, state: dict, chosen) -> tuple[HeadInputs, dict]:
    picked = HeadInputs(
        *(each[chosen] for each in inputs[:4]), sample_keys=inputs.sample_keys[chosen]
    )
    return picked, {name: tensor[chosen] for name, tensor in state.items()}


def metric_of(settings, inputs, state, layer=LAYER) -> Tensor:
    return build_mechanism("elliptical", layer, settings).lift(inputs, state)[1]["metric"]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_explicit_path_equals_the_fused_one(name, settings):
    mechanism = build_mechanism(name, LAYER, settings)
    inputs, state = make_inputs()
    output, weights, _ = mechanism.explicit(inputs, state)
    assert torch.allclose(output, mechanism(inputs, state)[0], atol=1e-12)
    assert torch.allclose(weights.sum(-1), torch.ones_like(weights.sum(-1)), atol=1e-12)
    assert bool((weights >= 0).all())


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_sample_alone_equals_the_sample_in_a_batch(name, settings):
    mechanism = build_mechanism(name, LAYER, settings)
    inputs, state = make_inputs()
    together = mechanism(inputs, state)[0]
    for row in range(3):
        alone = mechanism(*rows(inputs, state, slice(row, row + 1)))[0]
        assert torch.allclose(alone[0], together[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_permuting_tokens_permutes_the_output(name, settings):
    mechanism = build_mechanism(name, LAYER, settings)
    inputs, state = make_inputs()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    moved = HeadInputs(
        *(each[:, :, order] for each in inputs[:3]),
        inputs.tokens[:, order],
        sample_keys=inputs.sample_keys,
    )
    moved_state = {name: tensor[:, :, order] for name, tensor in state.items()}
    expected = mechanism(inputs, state)[0][:, :, order]
    assert torch.allclose(mechanism(moved, moved_state)[0], expected, atol=1e-12)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_gradients_are_right(name, settings):
    """Against finite differences; detached statistics are made to flow first."""
    mechanism = build_mechanism(name, LAYER, settings)
    mechanism.gradient_mode = "through"
    inputs, state = make_inputs(batch=1, tokens=3)

    def attend(query, key, value, previous):
        heads = HeadInputs(query, key, value, inputs.tokens, sample_keys=inputs.sample_keys[:1])
        return mechanism(heads, {"values": previous})[0][:, :2, :, :3]

    leaves = [
        each.clone().requires_grad_()
        for each in (inputs.query, inputs.key, inputs.value, state["values"])
    ]
    assert torch.autograd.gradcheck(attend, leaves, atol=1e-6)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_the_causal_mask_hides_later_tokens_where_promised(name, settings):
    mechanism = build_mechanism(name, LAYER, settings)
    inputs, state = make_inputs()
    changed = inputs._replace(
        causal=True, key=inputs.key.clone(), value=inputs.value.clone(), query=inputs.query.clone()
    )
    for tensor in (changed.key, changed.value, changed.query):
        tensor[:, :, 4:] += 1
    before = mechanism(inputs._replace(causal=True), state)[0]
    kept = torch.equal(mechanism(changed, state)[0][:, :, :4], before[:, :, :4])
    assert kept == (mechanism.flags.causal == "exact")


def test_identity_metric_is_softmax():
    inputs, state = make_inputs()
    plain = build_mechanism("softmax", LAYER, {})(inputs, {})[0]
    identity = build_mechanism("elliptical", LAYER, {**ELLIPTICAL, "metric": "identity"})
    assert torch.equal(identity(inputs, state)[0], plain)


def test_the_metric_by_hand():
    """Equation 10 and the two scalings in numpy."""
    inputs, state = make_inputs()
    movement = np.abs(inputs.value.numpy() - state["values"].numpy())
    spread = movement.mean(axis=2)
    expected = {
        "max": spread / spread.max(axis=-1, keepdims=True),
        "mean": spread / spread.mean(axis=-1, keepdims=True),
        "none": spread / 2.0,
    }
    for scaling, metric in expected.items():
        actual = estimate_metric(inputs.value, state["values"], scaling=scaling, delta=2.0)
        np.testing.assert_allclose(actual.numpy(), metric, rtol=1e-12)


@pytest.mark.parametrize(("tokens", "method"), [(7, "linear"), (8, "lower")])
def test_median_statistic(tokens, method):
    """For an even number of tokens it is torch's: the lower of the two in the middle."""
    inputs, state = make_inputs(tokens=tokens)
    movement = np.abs(inputs.value.numpy() - state["values"].numpy())
    expected = np.quantile(movement, 0.5, axis=2, method=method)
    actual = estimate_metric(inputs.value, state["values"], scaling="none", statistic="median")
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scalings(dtype):
    inputs, state = make_inputs(dtype=dtype)
    largest = estimate_metric(inputs.value, state["values"], scaling="max")
    assert torch.equal(largest.amax(-1), torch.ones(3, 3, dtype=dtype))
    mean = estimate_metric(inputs.value, state["values"], scaling="mean")
    assert torch.allclose(mean.mean(-1), torch.ones(3, 3, dtype=dtype), rtol=1e-6)


@pytest.mark.parametrize("scaling", ["max", "mean", "none"])
def test_delta_cancels_unless_nothing_is_scaled(scaling):
    inputs, state = make_inputs()
    one, five = (
        metric_of({"scaling": scaling, "delta": delta}, inputs, state) for delta in (1.0, 5.0)
    )
    if scaling == "none":
        assert torch.allclose(one, 5 * five)
    else:
        assert torch.allclose(one, five, rtol=1e-12)


@pytest.mark.parametrize("mode", ["detached", "through"])
@pytest.mark.parametrize("scaling", ["max", "mean", "none"])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_values_that_did_not_move_give_one_and_finite_gradients(mode, scaling, statistic):
    inputs, _ = make_inputs()
    value = inputs.value.clone().requires_grad_()
    query = inputs.query.clone().requires_grad_()
    settings = {"scaling": scaling, "statistic": statistic, "gradient_mode": mode}
    mechanism = build_mechanism("elliptical", LAYER, settings)
    output, state = mechanism(inputs._replace(query=query, value=value), {"values": inputs.value})
    assert torch.equal(state["metric"], torch.ones_like(state["metric"]))
    output.square().sum().backward()
    assert bool(value.grad.isfinite().all())
    assert bool(query.grad.isfinite().all())


@pytest.mark.parametrize("mode", ["detached", "through"])
def test_gradient_flows_through_the_metric_only_when_asked(mode):
    inputs, state = make_inputs()
    previous = state["values"].clone().requires_grad_()
    mechanism = build_mechanism("elliptical", LAYER, {**ELLIPTICAL, "gradient_mode": mode})
    query = inputs.query.clone().requires_grad_()
    output, _ = mechanism(inputs._replace(query=query), {"values": previous})
    (gradient,) = torch.autograd.grad(output.sum(), previous, allow_unused=True)
    if mode == "detached":
        assert gradient is None
    else:
        assert float(gradient.abs().max()) > 0


@pytest.mark.parametrize("scaling", ["max", "mean", "none"])
def test_constant_control_is_the_mean_of_the_metric(scaling):
    inputs, state = make_inputs()
    estimated = metric_of({"scaling": scaling}, inputs, state)
    constant = metric_of({"scaling": scaling, "metric": "constant"}, inputs, state)
    assert torch.allclose(constant, estimated.mean(-1, keepdim=True).expand_as(estimated))


class TestRandomControl:
    def test_belongs_to_the_sample_not_to_the_batch(self):
        inputs, state = make_inputs()
        together = metric_of(RANDOM, inputs, state)
        alone = metric_of(RANDOM, *rows(inputs, state, slice(2, 3)))
        assert torch.equal(alone[0], together[2])
        assert not torch.allclose(together[0], together[1])

    def test_repeats_and_leaves_the_global_generators_alone(self):
        inputs, state = make_inputs()
        before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
        first, second = (metric_of(RANDOM, inputs, state) for _ in range(2))
        assert torch.equal(first, second)
        assert torch.equal(torch.random.get_rng_state(), before[0])
        assert np.array_equal(np.random.get_state()[1], before[1])

    def test_depends_on_seed_and_block(self):
        inputs, state = make_inputs()
        base = metric_of(RANDOM, inputs, state)
        other_seed = metric_of({**RANDOM, "random_seed": 1}, inputs, state)
        later = LayerShape(dim=24, num_heads=3, head_dim=8, index=2, depth=3, num_tokens=7)
        assert not torch.allclose(base, other_seed)
        assert not torch.allclose(base, metric_of(RANDOM, inputs, state, later))

    def test_floor(self):
        inputs, state = make_inputs(batch=50)
        settings = {**RANDOM, "scaling": "none", "random_floor": 0.3}
        metric = metric_of(settings, inputs, state)
        assert 0.3 <= float(metric.min()) < 0.32
        assert 0.98 < float(metric.max()) < 1


class TestSettings:
    def test_only_chosen_blocks_have_a_metric(self):
        with_metric = [
            build_mechanism(
                "elliptical",
                LayerShape(24, 3, 8, index, 4, 7),
                {**ELLIPTICAL, "blocks": [1, 3]},
            ).has_metric
            for index in range(4)
        ]
        assert with_metric == [False, True, False, True]

    def test_every_block_but_the_first_by_default(self):
        first = build_mechanism("elliptical", LayerShape(24, 3, 8, 0, 4, 7), ELLIPTICAL)
        inputs, _ = make_inputs()
        assert "metric" not in first.lift(inputs, {})[1]
        assert build_mechanism("elliptical", LAYER, ELLIPTICAL).has_metric

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"blocks": [0, 1]}, "block 0 has no previous values"),
            ({"blocks": [1, 3]}, r"must lie in 1\.\.2 for a model of 3 blocks, got \[1, 3\]"),
            ({"delta": 0}, "delta: input should be greater than 0"),
            ({"scaling": "maximum"}, "scaling: input should be 'max', 'mean' or 'none'"),
            ({"random_floor": 1}, "random_floor"),
        ],
    )
    def test_bad_settings(self, settings, message):
        with pytest.raises(UsageError, match=message):
            build_mechanism("elliptical", LAYER, {**ELLIPTICAL, **settings})

    def test_scaling_has_no_default(self):
        with pytest.raises(UsageError, match="attention elliptical: scaling: field required"):
            build_mechanism("elliptical", LAYER, {})

    def test_unknown_names_get_suggestions(self):
        with pytest.raises(UnknownNameError, match="did you mean 'scaling'"):
            build_mechanism("elliptical", LAYER, {**ELLIPTICAL, "scalling": "max"})
        with pytest.raises(UnknownNameError, match="did you mean 'elliptical'"):
            build_mechanism("eliptical", LAYER, {})


class TestLanguageModelSettings:
    """A causal metric, and the released language models' unscaled logits."""

    @pytest.mark.parametrize("scaling", ["max", "mean", "none"])
    def test_prefix_metric_is_the_window_metric_of_each_prefix(self, scaling):
        inputs, state = make_inputs()
        prefix = metric_of({"scaling": scaling, "metric_scope": "prefix"}, inputs, state)
        for length in range(1, 8):
            window = estimate_metric(
                inputs.value[:, :, :length], state["values"][:, :, :length], scaling=scaling
            )
            assert torch.allclose(prefix[:, :, length - 1], window, rtol=1e-12)

    @pytest.mark.parametrize("scope", ["prefix", "window"])
    def test_only_the_prefix_scope_is_causal(self, scope):
        mechanism = build_mechanism("elliptical", LAYER, {**ELLIPTICAL, "metric_scope": scope})
        inputs, state = make_inputs()
        inputs = inputs._replace(causal=True)
        later = inputs.value.clone()
        later[:, :, 4:] += 1
        before = mechanism(inputs, state)[0][:, :, :4]
        after = mechanism(inputs._replace(value=later), state)[0][:, :, :4]
        assert torch.allclose(after, before, atol=1e-12) == (scope == "prefix")

    def test_scale_none_is_scaled_queries(self):
        inputs, state = make_inputs()
        larger = inputs._replace(query=inputs.query * LAYER.head_dim**0.5)
        unscaled = build_mechanism("elliptical", LAYER, {**ELLIPTICAL, "scale": "none"})
        scaled = build_mechanism("elliptical", LAYER, ELLIPTICAL)
        expected = scaled(larger, state)[0]
        assert torch.allclose(unscaled(inputs, state)[0], expected, atol=1e-12)


@pytest.mark.parametrize("scaling", ["max", "mean"])
def test_float32_metric_under_autocast(scaling):
    inputs, state = make_inputs(dtype=torch.float32)
    mechanism = build_mechanism("elliptical", LAYER, {"scaling": scaling})
    low = HeadInputs(*(each.bfloat16() for each in inputs[:4]))
    low_state = {"values": state["values"].bfloat16()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, following = mechanism(low, low_state)
    assert following["metric"].dtype == torch.float32
    assert output.dtype == torch.bfloat16
    exact = estimate_metric(low.value.double(), low_state["values"].double(), scaling=scaling)
    assert torch.allclose(following["metric"].double(), exact, rtol=1e-6)

import numpy as np
import pytest
import torch

from robustbench_elliptical.models.attention.performer import draw_projection

NAIVE = [
    {},
    {"kernel": "hyperbolic", "scale": "none"},
    {"kernel": "relu", "projection": "independent"},
    {"kernel": "hyperbolic", "eps_mode": "released", "projection": "released-swapped"},
    {"kernel": "relu", "eps_mode": "released"},
]


def features(vectors, mechanism):
    """The features of the paper, as they are written."""
    options = mechanism.options
    if options.scale == "sqrt":
        vectors = vectors / 4**0.25
    along = torch.einsum("fd,bhnd->bhnf", mechanism.projection, vectors)
    half = vectors.square().sum(-1, keepdim=True) / 2
    if options.kernel == "softmax":
        values = torch.exp(along - half)
    elif options.kernel == "hyperbolic":
        values = torch.cat([torch.exp(along - half), torch.exp(-along - half)], -1)
    else:
        values = along.clamp_min(0) + 1e-3
    released = 1e-4 if options.eps_mode == "released" else 0.0
    return (values + released) / values.shape[-1] ** 0.5


@pytest.mark.parametrize("settings", [{"features": 8, **each} for each in NAIVE[:3]])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("performer", settings)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("settings", NAIVE)
def test_the_definition(settings, causal, build, make_inputs):
    """Over several chunks."""
    inputs = make_inputs(tokens=37, causal=causal)
    mechanism = build("performer", {"features": 12, **settings})
    weights = features(inputs.query, mechanism) @ features(inputs.key, mechanism).mT
    weights = weights.tril() if causal else weights
    eps = 1e-5 if settings.get("eps_mode") == "released" else 0.0
    weights = weights / (weights.sum(-1, keepdim=True) + eps)
    explicit = mechanism.explicit(inputs, {})
    assert torch.allclose(explicit.weights, weights, atol=1e-12)
    assert torch.allclose(explicit.output, weights @ inputs.value, atol=1e-12)
    assert torch.allclose(mechanism(inputs, {})[0], weights @ inputs.value, atol=1e-12)


def test_gradients_over_several_chunks(build, make_inputs):
    inputs = make_inputs(tokens=20, batch=1, causal=True)
    mechanism = build("performer", {"features": 6})
    leaves = [each.clone().requires_grad_() for each in inputs[:3]]
    kept = [
        torch.autograd.grad(
            path(inputs._replace(query=q, key=k, value=v), {})[0].sin().sum(), leaves
        )
        for q, k, v in [leaves]
        for path in (mechanism, mechanism.explicit)
    ]
    for one, other in zip(*kept, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_more_features_are_closer_to_softmax(build, make_inputs, softmax_output):
    inputs = make_inputs(tokens=20)
    expected = softmax_output(inputs)
    errors = []
    for count in (64, 4096):
        outputs = [
            build("performer", {"features": count, "seed": seed})(inputs, {})[0]
            for seed in range(4)
        ]
        errors.append(
            float(torch.stack([(each - expected).abs().mean() for each in outputs]).mean())
        )
    assert errors[1] < errors[0] / 2
    assert errors[1] < 0.05


def test_without_the_scale_it_approaches_unscaled_softmax(build, make_inputs, softmax_output):
    inputs = make_inputs(tokens=20)
    inputs = inputs._replace(query=inputs.query / 2, key=inputs.key / 2)
    output = build("performer", {"features": 8192, "scale": "none"})(inputs, {})[0]
    errors = [
        float((output - softmax_output(inputs, scale=scale)).abs().mean()) for scale in (1.0, 0.5)
    ]
    assert errors[0] < errors[1] / 2


@pytest.mark.parametrize("kernel", ["softmax", "hyperbolic"])
def test_huge_later_keys_leave_the_past_as_it_is(kernel, build, make_inputs):
    """A stabiliser over all keys would make the features of earlier ones vanish."""
    mechanism = build("performer", {"kernel": kernel, "features": 8})
    inputs = make_inputs(tokens=40, dtype=torch.float32, causal=True)
    key = inputs.key.clone()
    key[:, :, 21:] *= 0.0
    quiet = inputs._replace(key=key)
    loud = inputs._replace(key=torch.where(key == 0, 60 * inputs.key, key))
    for path in (mechanism, mechanism.explicit):
        before, after = path(quiet, {})[0], path(loud, {})[0]
        assert bool(after.isfinite().all())
        assert torch.allclose(after[:, :, :21], before[:, :, :21], rtol=0, atol=1e-6)


class TestDirections:
    def test_orthogonal_in_blocks_with_gaussian_lengths(self):
        drawn = draw_projection(1000, 6, np.random.default_rng(0))
        for start in (0, 6, 990):
            block = drawn[start : start + 6]
            products = block @ block.T
            np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
        assert drawn.shape == (1000, 6)
        assert np.square(drawn).sum(1).mean() == pytest.approx(6, rel=0.1)
        assert np.square(drawn).sum(1).std() == pytest.approx(12**0.5, rel=0.15)
        assert np.abs(drawn.mean(0)).max() < 0.1

    def test_the_released_draw_has_orthogonal_columns_instead(self):
        drawn = draw_projection(50, 6, np.random.default_rng(0), "released-swapped")
        products = drawn.T @ drawn
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
        rows = drawn[:6] @ drawn[:6].T
        assert np.abs(rows - np.diag(np.diag(rows))).max() > 0.1
        assert np.square(drawn).mean() == pytest.approx(1, rel=0.2)

    def test_belong_to_seed_and_layer_and_stay(self, build, make_inputs):
        before = torch.random.get_rng_state()
        mechanism = build("performer", {"features": 8})
        assert torch.equal(torch.random.get_rng_state(), before)
        draws = mechanism.projection.clone()
        assert torch.equal(draws, build("performer", {"features": 8}, num_tokens=50).projection)
        assert not torch.equal(draws, build("performer", {"features": 8, "seed": 1}).projection)
        assert not torch.equal(draws, build("performer", {"features": 8}, index=2).projection)
        mechanism.train()(make_inputs(), {})
        assert torch.equal(mechanism.state_dict()["projection"], draws)

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.kernel_density import effective_keys
from robustbench_elliptical.models.attention.rkde import robust_weights


def gram_of(points, coefficient=0.5):
    return torch.exp(-coefficient * torch.cdist(points, points).square())


def by_hand(gram, loss, threshold, iterations=1, sign=-2.0):
    """One matrix's weights in numpy, loops over tokens."""
    count = len(gram)
    weights = np.full(count, 1 / count)
    for _ in range(iterations):
        factors = []
        for j in range(count):
            h = np.sqrt(1 + sign * (gram[j] @ weights) + weights @ gram @ weights)
            if h <= threshold:
                factor = 1.0
            elif loss == "huber" or h < 2 * threshold:
                factor = threshold / h
            elif h < 3 * threshold:
                factor = threshold * (3 * threshold - h) / (threshold * h)
            else:
                factor = 0.01
            factors.append(factor)
        weights = np.array(factors) / np.sum(factors)
    return weights


def random_gram(seed=0, tokens=9, spread=0.6):
    generator = torch.Generator().manual_seed(seed)
    points = spread * torch.randn(2, 2, tokens, 3, generator=generator, dtype=torch.float64)
    return gram_of(points)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "hampel", "threshold": 0.4},
        {"iterations": 3, "threshold": 0.5},
        {"normalize_keys": False, "coefficient": 0.1, "gram_coefficient": 0.2},
        {"released_sign": True},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("rkde", settings, rows=False)


def test_contract_of_the_median_bandwidth(keeps_the_contract):
    keeps_the_contract("rkde", {"gram_coefficient": "median"}, rows=False, causal=False)


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.6])
@pytest.mark.parametrize("loss", ["huber", "hampel"])
def test_weights_by_hand(loss, threshold, iterations):
    gram = random_gram()
    weights = robust_weights(gram, loss=loss, threshold=threshold, iterations=iterations)
    assert weights.shape == (2, 2, 1, 9)
    for each, expected in zip(gram.flatten(0, 1), weights.flatten(0, 1), strict=True):
        hand = by_hand(each.numpy(), loss, threshold, iterations)
        np.testing.assert_allclose(expected[0].numpy(), hand, rtol=1e-10)
    released = robust_weights(gram, loss=loss, threshold=threshold, released_sign=True)
    hand = by_hand(gram[1, 1].numpy(), loss, threshold, sign=1.0)
    np.testing.assert_allclose(released[1, 1, 0].numpy(), hand, rtol=1e-10)


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("loss", ["huber", "hampel"])
def test_causal_weights_are_those_of_each_prefix(loss, iterations):
    gram = random_gram()
    options = {"loss": loss, "threshold": 0.4, "iterations": iterations}
    rows = robust_weights(gram, causal=True, **options)
    assert torch.equal(rows, rows.tril())
    for length in range(1, 10):
        prefix = robust_weights(gram[..., :length, :length], **options)[..., 0, :]
        assert torch.allclose(rows[..., length - 1, :length], prefix, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_the_output_by_definition(causal, build, make_inputs):
    """Numerator and denominator with their own weights, for each query."""
    inputs, mechanism = make_inputs(causal=causal), build("rkde", {"threshold": 0.4})
    output = mechanism(inputs, {})[0]
    key = torch.nn.functional.normalize(inputs.key, dim=-1)
    kernel = torch.exp(-0.5 * torch.cdist(inputs.query, key).square())
    for i in range(10):
        last = i + 1 if causal else 10
        points, value = key[:, :, :last], inputs.value[:, :, :last]
        marginal, joint = (
            robust_weights(gram_of(each), threshold=0.4)[:, :, 0]
            for each in (points, torch.cat([points, value], dim=-1))
        )
        scores = kernel[:, :, i, :last]
        top = ((joint * scores).unsqueeze(-1) * value).sum(-2)
        expected = top / (marginal * scores).sum(-1, keepdim=True)
        assert torch.allclose(output[:, :, i], expected, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_a_large_threshold_is_kde(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    output = build("rkde", {"threshold": 100})(inputs, {})[0]
    assert torch.allclose(output, build("kde")(inputs, {})[0], atol=1e-13)


def test_equal_tokens_weigh_the_same(build, make_inputs):
    inputs = make_inputs()
    key, value = (each[:, :, :1].expand_as(each) for each in (inputs.key, inputs.value))
    for weights in build("rkde").key_weights(inputs._replace(key=key, value=value)):
        assert torch.allclose(weights, torch.full_like(weights, 0.1))
        assert torch.allclose(effective_keys(weights), torch.tensor(10.0).double())


def test_an_outlier_weighs_less_and_with_the_released_sign_a_little_more():
    generator = torch.Generator().manual_seed(0)
    points = 0.1 * torch.randn(1, 1, 20, 4, generator=generator, dtype=torch.float64)
    points[..., 0, :] = 5
    ratios = {}
    for name, options in {
        "huber": {},
        "hampel": {"loss": "hampel"},
        "released": {"released_sign": True},
    }.items():
        weights = robust_weights(gram_of(points), **options)[0, 0, 0]
        ratios[name] = float(weights[0] / weights[1:].mean())
    assert ratios["hampel"] < 0.05 < ratios["huber"] < 0.3
    assert 1 < ratios["released"] < 1.6


def test_permuting_tokens_permutes_the_output(build, make_inputs):
    inputs, mechanism = make_inputs(), build("rkde")
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1))
    moved = inputs._replace(
        query=inputs.query[:, :, order],
        key=inputs.key[:, :, order],
        value=inputs.value[:, :, order],
    )
    assert torch.allclose(
        mechanism(moved, {})[0], mechanism(inputs, {})[0][:, :, order], atol=1e-12
    )


def test_only_the_released_average_couples_a_batch(build, make_inputs):
    inputs = make_inputs()
    alone = type(inputs)(*(each[:1] for each in inputs[:4]))
    differences = {}
    for average in ("none", "released-batch-mean"):
        settings = {"iterations": 2, "threshold": 0.4, "average": average}
        mechanism = build("rkde", settings)
        moved = mechanism(alone, {})[0][0] - mechanism(inputs, {})[0][0]
        differences[average] = float(moved.abs().max())
    assert differences["none"] < 1e-12
    assert differences["released-batch-mean"] > 1e-5


def test_the_median_bandwidth_spreads_the_weights(build, make_inputs):
    """At the published one, keys in 4 dimensions with values already hardly overlap."""
    inputs = make_inputs()
    inputs = inputs._replace(value=10 * inputs.value)
    counts = {
        setting: build("rkde", {"gram_coefficient": setting})(inputs, {})[1]["effective_keys"]
        for setting in ("same", "median")
    }
    assert counts["same"].shape == (2, 2, 2)
    assert float(counts["same"][..., 1].min()) > 9.99
    assert float(counts["median"][..., 1].max()) < 9.99


def test_the_median_is_that_of_all_pairs(build, make_inputs):
    mechanism = build("rkde", {"gram_coefficient": "median", "normalize_keys": False})
    points = make_inputs().key
    pairs = torch.cdist(points, points).square()[..., *torch.triu_indices(10, 10, 1)]
    middle = pairs.sort(dim=-1).values[..., 22]
    expected = torch.exp(-torch.cdist(points, points).square() / middle[..., None, None])
    assert torch.allclose(mechanism._gram(points), expected, atol=1e-12)


def test_bad_settings(build):
    with pytest.raises(UsageError, match="threshold: input should be greater than 0"):
        build("rkde", {"threshold": 0})
    assert not build("rkde").state_dict()

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from robustbench_elliptical.models.attention.spkde import project_to_simplex, projected_weights


def random_gram(seed=0, tokens=8, spread=0.7):
    generator = torch.Generator().manual_seed(seed)
    points = spread * torch.randn(2, 2, tokens, 3, generator=generator, dtype=torch.float64)
    return torch.exp(-0.5 * torch.cdist(points, points).square())


def objective(gram, weights, beta):
    return weights @ gram @ weights / 2 - beta * (gram.mean(0) @ weights)


@pytest.mark.parametrize(
    "settings",
    [
        {"gradient_mode": "through", "iterations": 8},
        {
            "gradient_mode": "through",
            "normalize_keys": False,
            "outlier_fraction": 0.4,
            "iterations": 8,
        },
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("spkde", settings, rows=False)


def test_contract_of_the_median_bandwidth(keeps_the_contract):
    settings = {"gradient_mode": "through", "gram_coefficient": "median", "iterations": 8}
    keeps_the_contract("spkde", settings, rows=False, causal=False)


@pytest.mark.parametrize("beta", [1.1, 1.5, 3.0])
def test_the_solver_against_scipy(beta):
    gram = random_gram()
    weights = projected_weights(gram, beta, 400)
    assert bool((weights >= 0).all())
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 1).double())
    for each, found in zip(gram.flatten(0, 1).numpy(), weights.flatten(0, 1).numpy(), strict=True):
        best = minimize(
            lambda point, each=each: objective(each, point, beta),
            np.full(8, 1 / 8),
            jac=lambda point, each=each: each @ point - beta * each.mean(0),
            method="SLSQP",
            bounds=[(0, 1)] * 8,
            constraints={"type": "eq", "fun": lambda point: point.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        value = objective(each, found[0], beta)
        assert value <= objective(each, np.full(8, 1 / 8), beta)
        assert value == pytest.approx(best.fun, abs=1e-8)


@pytest.mark.parametrize(("dim", "spread", "gap"), [(3, 0.7, 0.1), (64, 0.1, 0.01)])
def test_the_default_number_of_steps_is_enough(dim, spread, gap):
    """Also where all keys are alike: then only what differs between them sets the step."""
    generator = torch.Generator().manual_seed(0)
    points = spread * torch.randn(1, 1, 60, dim, generator=generator, dtype=torch.float64)
    gram = torch.exp(-(dim**-0.5) * torch.cdist(points, points).square())
    weights = [projected_weights(gram, 1 / 0.9, steps) for steps in (0, 50, 1000)]
    mean = gram.mean(-1, keepdim=True)
    start, few, many = (
        (each @ gram @ each.mT / 2 - each @ mean / 0.9).flatten() for each in weights
    )
    assert bool((few - many < gap * (start - many)).all())


def test_projection_by_its_conditions():
    """Coordinates of the projection are the point's, all lowered by one number, or 0 if below."""
    generator = torch.Generator().manual_seed(0)
    points = 2 * torch.randn(50, 6, generator=generator, dtype=torch.float64)
    found = project_to_simplex(points)
    assert torch.allclose(found.sum(-1), torch.ones(50).double())
    lowered = points - found
    level = lowered.masked_fill(found == 0, -torch.inf).amax(-1, keepdim=True)
    assert torch.allclose(lowered[found > 0], level.expand_as(found)[found > 0])
    assert bool((points <= level + 1e-12)[found == 0].all())
    allowed = torch.tensor([True, False, True, True, False, False]).expand_as(points)
    some = project_to_simplex(points, allowed)
    assert torch.allclose(some[:, [0, 2, 3]], project_to_simplex(points[:, [0, 2, 3]]))
    assert bool((some[:, [1, 4, 5]] == 0).all())


@pytest.mark.parametrize("causal", [False, True])
def test_no_outliers_is_kde(causal, build, make_inputs):
    gram = random_gram()
    uniform = torch.ones(8, 8).double().tril() if causal else torch.ones(1, 8).double()
    uniform = uniform / uniform.sum(-1, keepdim=True)
    weights = projected_weights(gram, 1.0, 50, causal=causal)
    assert torch.allclose(weights, uniform.expand_as(weights), atol=1e-13)
    inputs = make_inputs(causal=causal)
    output = build("spkde", {"outlier_fraction": 0})(inputs, {})[0]
    assert torch.allclose(output, build("kde")(inputs, {})[0], atol=1e-12)


def test_causal_weights_are_those_of_each_prefix():
    gram = random_gram()
    rows = projected_weights(gram, 1.3, 60, causal=True)
    assert torch.equal(rows, rows.tril())
    for length in range(1, 9):
        prefix = projected_weights(gram[..., :length, :length], 1.3, 60)[..., 0, :]
        assert torch.allclose(rows[..., length - 1, :length], prefix, atol=1e-12)


def test_an_outlier_fades_as_more_are_expected():
    generator = torch.Generator().manual_seed(0)
    points = 0.5 * torch.randn(1, 1, 20, 2, generator=generator, dtype=torch.float64)
    points[..., 0, :] = 4
    gram = torch.exp(-0.5 * torch.cdist(points, points).square())
    ratios = []
    for fraction in (0.0, 0.02, 0.05, 0.4):
        weights = projected_weights(gram, 1 / (1 - fraction), 150)[0, 0, 0]
        ratios.append(float(weights[0] / weights[1:].mean()))
    assert ratios[0] == pytest.approx(1)
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] == 0


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_flow_through_the_weights_only_when_asked(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    outputs, gradients = {}, {}
    for mode in ("detached", "through"):
        mechanism = build("spkde", {"gradient_mode": mode})
        assert mechanism.skips_gradients == (mode == "detached")
        key = inputs.key.clone().requires_grad_()
        given = inputs._replace(key=key)
        assert mechanism.key_weights(given)[0].requires_grad == (mode == "through")
        outputs[mode] = mechanism(given, {})[0]
        (gradients[mode],) = torch.autograd.grad(outputs[mode].square().sum(), key)
    assert torch.equal(outputs["detached"], outputs["through"])
    assert not torch.allclose(gradients["detached"], gradients["through"], atol=1e-4)


def test_only_the_released_average_couples_a_batch(build, make_inputs):
    inputs = make_inputs()
    alone = type(inputs)(*(each[:1] for each in inputs[:4]))
    differences = {}
    for average in ("none", "released-batch-mean"):
        mechanism = build("spkde", {"gram_average": average, "outlier_fraction": 0.3})
        moved = mechanism(alone, {})[0][0] - mechanism(inputs, {})[0][0]
        differences[average] = float(moved.abs().max())
    assert differences["none"] < 1e-12
    assert differences["released-batch-mean"] > 1e-3


def test_weights_of_zero_leave_a_finite_ratio(build, make_inputs):
    """A far key that only the joint weights keep: the output is large, and a number."""
    mechanism = build("spkde", {"outlier_fraction": 0.8})
    for weights in mechanism.key_weights(make_inputs()):
        assert float(weights.min()) == pytest.approx(1e-9)
    huge = make_inputs()
    huge = huge._replace(query=1e4 * huge.query)
    for path in (mechanism, mechanism.explicit):
        assert bool(path(huge, {})[0].isfinite().all())
    assert not mechanism.state_dict()

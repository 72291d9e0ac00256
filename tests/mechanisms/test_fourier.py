import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.fourier import log_fourier_kernel


def plain_kernel(query, key, radius, power=4):
    angles = radius * (query.unsqueeze(-2) - key.unsqueeze(-3))
    ratios = torch.where(angles == 0, 1.0, angles.sin() / torch.where(angles == 0, 1.0, angles))
    return (ratios**power).prod(-1)


@pytest.mark.parametrize("settings", [{}, {"radius": "vector", "initial_radius": 2, "power": 2}])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("fourier", settings)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("eps_mode", ["none", "released"])
@pytest.mark.parametrize("radius", ["scalar", "vector"])
def test_the_definition(radius, eps_mode, causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    mechanism = build("fourier", {"radius": radius, "eps_mode": eps_mode})
    kernel = plain_kernel(inputs.query, inputs.key, mechanism.radius.detach())
    kernel = kernel.tril() if causal else kernel
    weights = kernel / (kernel.sum(-1, keepdim=True) + (1e-6 if eps_mode == "released" else 0))
    for path in (mechanism, mechanism.explicit):
        assert torch.allclose(path(inputs, {})[0], weights @ inputs.value, atol=1e-12)
    assert torch.allclose(mechanism.explicit(inputs, {}).weights, weights, atol=1e-13)


def test_a_kernel_is_one_at_no_distance_and_symmetric(make_inputs):
    inputs = make_inputs()
    radius = torch.tensor([0.5, 1.0, 2.0, 1.5]).double()
    kernel = log_fourier_kernel(inputs.query, inputs.key, radius).exp()
    assert torch.allclose(kernel, log_fourier_kernel(inputs.key, inputs.query, radius).exp().mT)
    assert bool((kernel >= 0).all() & (kernel <= 1).all())
    diagonal = log_fourier_kernel(inputs.key, inputs.key, radius).diagonal(dim1=-2, dim2=-1)
    assert torch.equal(diagonal, torch.zeros_like(diagonal))
    one = log_fourier_kernel(inputs.query, inputs.key, torch.tensor([1.3]).double())
    four = log_fourier_kernel(inputs.query, inputs.key, torch.full((4,), 1.3).double())
    assert torch.equal(one, four)


def test_no_radius_is_the_mean(build, make_inputs):
    inputs = make_inputs()
    output = build("fourier", {"initial_radius": 1e-6}, noise=0)(inputs, {})[0]
    assert torch.allclose(output, inputs.value.mean(2, keepdim=True).expand_as(output), atol=1e-10)


@pytest.mark.parametrize("power", [2, 4])
def test_a_small_radius_is_a_gaussian_kernel(power, build, make_inputs):
    inputs, radius = make_inputs(), 0.02
    gaussian = {"normalize_keys": False, "coefficient": power * radius**2 / 6}
    expected = build("kde", gaussian)(inputs, {})[0]
    settings = {"initial_radius": radius, "power": power}
    output = build("fourier", settings, noise=0)(inputs, {})[0].detach()
    mean = inputs.value.mean(2, keepdim=True)
    assert float((output - expected).abs().max()) < 1e-3 * float((expected - mean).abs().max())


def test_the_released_sum_drowns_far_keys(build, make_inputs):
    inputs = make_inputs()
    inputs = inputs._replace(query=inputs.query + 50)
    row = {
        mode: build("fourier", {"eps_mode": mode}).explicit(inputs, {}).weights.detach().sum(-1)
        for mode in ("none", "released")
    }
    assert torch.allclose(row["none"], torch.ones_like(row["none"]))
    assert float(row["released"].max()) < 1e-2


def test_gradients_are_the_same_as_without_recomputing(build, make_inputs):
    inputs, mechanism = make_inputs(), build("fourier", {"radius": "vector"})
    leaves = [inputs.query.clone().requires_grad_(), mechanism.radius]
    output = mechanism(inputs._replace(query=leaves[0]), {})[0]
    actual = torch.autograd.grad(output.square().sum(), leaves)
    kernel = plain_kernel(leaves[0], inputs.key, mechanism.radius)
    output = kernel / kernel.sum(-1, keepdim=True) @ inputs.value
    expected = torch.autograd.grad(output.square().sum(), leaves)
    for one, other in zip(actual, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)


def test_odd_powers_are_refused(build):
    with pytest.raises(UsageError, match="power: must be even, got 3"):
        build("fourier", {"power": 3})

import pytest
import torch
import torch.nn.functional as functional

from robustbench_elliptical.core.errors import UsageError


def by_definition(inputs, key, coefficient):
    """Gaussian scores from distances, normalised."""
    scores = torch.exp(-coefficient * torch.cdist(inputs.query, key).square())
    if inputs.causal:
        scores = scores.tril()
    return scores / scores.sum(-1, keepdim=True) @ inputs.value


@pytest.mark.parametrize("settings", [{}, {"normalize_keys": False}, {"coefficient": 0.3}])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("kde", settings)


@pytest.mark.parametrize("causal", [False, True])
def test_the_definition(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    unit = functional.normalize(inputs.key, dim=-1)
    assert torch.allclose(build("kde")(inputs, {})[0], by_definition(inputs, unit, 0.5), atol=1e-11)
    raw = build("kde", {"normalize_keys": False, "coefficient": 0.7})(inputs, {})[0]
    assert torch.allclose(raw, by_definition(inputs, inputs.key, 0.7), atol=1e-12)


def test_half_the_coefficient_is_softmax_on_unit_keys(build, make_inputs, softmax_output):
    inputs = make_inputs()
    unit = inputs._replace(key=functional.normalize(inputs.key, dim=-1))
    output = build("kde", {"coefficient": 0.25})(inputs, {})[0]
    assert torch.allclose(output, softmax_output(unit), atol=1e-11)
    twice = build("kde")(inputs, {})[0]
    assert torch.allclose(twice, softmax_output(unit, scale=1.0), atol=1e-11)


def test_raw_keys_may_be_shifted_along_with_the_queries(build, make_inputs, softmax_output):
    inputs = make_inputs()
    moved = inputs._replace(query=inputs.query + 0.8, key=inputs.key + 0.8)
    kde = build("kde", {"normalize_keys": False})
    assert torch.allclose(kde(moved, {})[0], kde(inputs, {})[0], atol=1e-12)
    assert not torch.allclose(softmax_output(moved), softmax_output(inputs), atol=1e-2)


def test_its_state_dict_is_plain_attentions(build):
    assert not build("kde").state_dict()


@pytest.mark.parametrize("coefficient", [0, -1, "infinite"])
def test_bad_coefficients_are_refused(coefficient, build):
    with pytest.raises(UsageError, match="attention kde: coefficient"):
        build("kde", {"coefficient": coefficient})


def test_a_zero_key_has_a_moderate_gradient(build, make_inputs):
    inputs = make_inputs()
    key = torch.zeros_like(inputs.key, requires_grad=True)
    build("kde")(inputs._replace(key=key), {})[0].square().sum().backward()
    assert float(key.grad.abs().max()) < 1e8

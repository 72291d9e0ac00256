import pytest
import torch

from robustbench_elliptical.core.errors import UsageError


@pytest.mark.parametrize("settings", [{}, {"keys": "unit"}])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("rvt_paas", settings)


@pytest.mark.parametrize("causal", [False, True])
def test_large_positions_are_softmax(causal, build, make_inputs, softmax_output):
    inputs = make_inputs(causal=causal)
    mechanism = build("rvt_paas", {"initial": 1e3}, noise=0)
    assert torch.allclose(mechanism(inputs, {})[0], softmax_output(inputs), atol=1e-15)


def test_small_positions_are_the_mean(build, make_inputs):
    inputs = make_inputs()
    mechanism = build("rvt_paas", {"initial": -1e3}, noise=0)
    mean = inputs.value.mean(-2, keepdim=True).expand_as(inputs.value)
    assert torch.allclose(mechanism(inputs, {})[0], mean, atol=1e-14)


def test_zero_halves_the_logits(build, make_inputs, softmax_output):
    inputs = make_inputs()
    expected = softmax_output(inputs, scale=0.25)
    assert torch.allclose(build("rvt_paas", noise=0)(inputs, {})[0], expected, atol=1e-14)


def test_every_logit_has_its_own_scale(build, make_inputs):
    mechanism, inputs = build("rvt_paas"), make_inputs()
    logits = mechanism.explicit(inputs, {}).weights.log()
    given = inputs.query @ inputs.key.mT / 2 * torch.sigmoid(mechanism.position_logits)
    assert torch.allclose(logits, given.log_softmax(-1), atol=1e-12)


def test_unit_keys(build, make_inputs):
    inputs = make_inputs()
    longer = inputs._replace(key=inputs.key * torch.rand(2, 2, 10, 1).double().add(0.5))
    unit = build("rvt_paas", {"keys": "unit"})
    assert torch.allclose(unit(longer, {})[0], unit(inputs, {})[0], atol=1e-10)


def test_starts_initialised_and_refuses_more_tokens(build, make_inputs):
    assert torch.equal(build("rvt_paas", noise=0).position_logits, torch.zeros(2, 10, 10).double())
    assert build("rvt_paas")(make_inputs(tokens=3), {})[0].shape == (2, 2, 3, 4)
    with pytest.raises(UsageError, match="built for at most 10 tokens, got 12"):
        build("rvt_paas")(make_inputs(tokens=12), {})

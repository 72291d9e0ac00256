import pytest
import torch


@pytest.mark.parametrize("renormalise", [False, True])
def test_contract(renormalise, keeps_the_contract):
    settings = {"renormalise": renormalise}
    keeps_the_contract("energy_gated", settings, linear=renormalise)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("renormalise", [False, True])
def test_open_gates_are_softmax(renormalise, causal, build, make_inputs, softmax_output):
    inputs = make_inputs(causal=causal)
    settings = {"renormalise": renormalise, "initial_threshold": -1e3}
    output = build("energy_gated", settings, noise=0)(inputs, {})[0]
    assert torch.allclose(output, softmax_output(inputs), atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
def test_the_formula_by_hand(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    mechanism = build("energy_gated", {"initial_sharpness": 3})
    energy = mechanism.energy(inputs.tokens)
    gates = torch.sigmoid(mechanism.log_sharpness.exp() * (energy - mechanism.threshold))
    weights = mechanism.explicit(inputs, {}).weights
    gated = weights * gates.transpose(1, 2)[:, :, None]
    assert torch.allclose(mechanism(inputs, {})[0], gated @ inputs.value, atol=1e-14)
    normalised = build("energy_gated", {"initial_sharpness": 3, "renormalise": True})
    expected = gated / gated.sum(-1, keepdim=True) @ inputs.value
    assert torch.allclose(normalised(inputs, {})[0], expected, atol=1e-13)


def test_start(build):
    mechanism = build("energy_gated", {"initial_sharpness": 2}, noise=0)
    assert torch.allclose(mechanism.threshold, torch.full((2,), 0.35).double(), atol=1e-7)
    assert torch.allclose(mechanism.log_sharpness.exp(), torch.full((2,), 2.0).double())
    # Energy 8 x 2, threshold 2, sharpness 2.
    assert sum(each.numel() for each in mechanism.parameters()) == 20

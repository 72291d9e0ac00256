import pytest
import torch


@pytest.mark.parametrize("granularity", ["elementwise", "headwise"])
def test_contract(granularity, keeps_the_contract):
    keeps_the_contract("gated", {"granularity": granularity}, linear=False)


@pytest.mark.parametrize("granularity", ["elementwise", "headwise"])
def test_open_gates_are_softmax_and_closed_ones_nothing(
    granularity, build, make_inputs, softmax_output
):
    inputs = make_inputs(causal=True)
    for bias, expected in ((1e3, softmax_output(inputs)), (-1e3, torch.zeros(1).double())):
        settings = {"granularity": granularity, "initial_bias": bias}
        output = build("gated", settings, noise=0)(inputs, {})[0]
        assert torch.allclose(output, expected.expand_as(output), atol=1e-14)


def test_a_gate_belongs_to_query_head_and_coordinate(build, make_inputs, softmax_output):
    inputs, mechanism = make_inputs(), build("gated")
    gates = torch.sigmoid(mechanism.gate(inputs.tokens)).reshape(2, 10, 2, 4).transpose(1, 2)
    assert torch.allclose(mechanism(inputs, {})[0], gates * softmax_output(inputs), atol=1e-14)
    headwise = build("gated", {"granularity": "headwise"})
    gates = torch.sigmoid(headwise.gate(inputs.tokens)).transpose(1, 2)[..., None]
    assert torch.allclose(headwise(inputs, {})[0], gates * softmax_output(inputs), atol=1e-14)


def test_start(build):
    gate = build("gated", noise=0, num_tokens=10).gate
    assert torch.equal(gate.bias, torch.full((8,), 0.5).double())
    assert 0 < float(gate.weight.detach().abs().max()) <= 0.1 * (6 / 16) ** 0.5

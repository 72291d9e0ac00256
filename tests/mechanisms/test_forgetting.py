import math

import pytest
import torch


def test_contract(keeps_the_contract):
    keeps_the_contract("forgetting")


@pytest.mark.parametrize("causal", [False, True])
def test_gates_of_one_are_softmax(causal, build, make_inputs, softmax_output):
    inputs = make_inputs(causal=causal)
    mechanism = build("forgetting", {"initial_bias": 1e3}, noise=0)
    with torch.no_grad():
        mechanism.forget_gate.weight.zero_()
    assert torch.allclose(mechanism(inputs, {})[0], softmax_output(inputs), atol=1e-15)


def test_constant_gates_are_alibi(build, make_inputs):
    inputs = make_inputs(causal=True)
    mechanism = build("forgetting", {"initial_bias": 1.5}, noise=0)
    with torch.no_grad():
        mechanism.forget_gate.weight.zero_()
    slope = -math.log(1 / (1 + math.exp(-1.5)))
    places = torch.arange(10.0).double()
    bias = -slope * (places[:, None] - places)
    logits = inputs.query @ inputs.key.mT / 2 + bias.masked_fill(bias > 0, -torch.inf)
    expected = logits.softmax(-1) @ inputs.value
    assert torch.allclose(mechanism(inputs, {})[0], expected, atol=1e-13)


def test_the_definition_as_a_loop(build, make_inputs):
    inputs, mechanism = make_inputs(causal=True), build("forgetting")
    gates = torch.sigmoid(mechanism.forget_gate(inputs.tokens))
    output = mechanism(inputs, {})[0]
    for head in range(2):
        for i in range(10):
            scores = torch.stack(
                [
                    torch.exp((inputs.query[:, head, i] * inputs.key[:, head, j]).sum(-1) / 2)
                    * gates[:, j + 1 : i + 1, head].prod(-1)
                    for j in range(i + 1)
                ],
                dim=-1,
            )
            weights = scores / scores.sum(-1, keepdim=True)
            expected = torch.einsum("bj,bjd->bd", weights, inputs.value[:, head, : i + 1])
            assert torch.allclose(output[:, head, i], expected, atol=1e-13)


def test_without_a_causal_mask_both_sides_fade(build, make_inputs):
    mechanism, inputs = build("forgetting"), make_inputs()
    both = mechanism.forgetting(inputs.tokens, causal=False)
    past = mechanism.forgetting(inputs.tokens, causal=True).tril()
    assert torch.equal(both.tril(), past.tril())
    assert torch.allclose(both, both.mT)
    assert bool((both <= 0).all())


def test_long_forgetting_keeps_its_digits_in_bfloat16(build, make_inputs):
    """Differences of running sums are taken in float32: near terms stay exact far along."""
    inputs = make_inputs(tokens=400, dtype=torch.bfloat16, causal=True)
    mechanism = build("forgetting", noise=0)
    exact = mechanism.forgetting(inputs.tokens.double(), causal=True)
    low = mechanism.forgetting(inputs.tokens, causal=True)
    assert low.dtype == torch.float32
    near = torch.arange(399)
    error = (low.double() - exact).detach()[:, :, near + 1, near].abs().max()
    assert float(error) < 5e-3  # of log(1/2), through bfloat16 gate logits; the sums reach -277

import pytest
import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import (
    AUXILIARY_LOSS,
    AuxiliaryLoss,
    LayerShape,
    SoftmaxAttention,
    build_mechanism,
)

SMALL = {"rank": 2, "samples_per_rank": 3}


@pytest.mark.parametrize("settings", [SMALL, {}, {**SMALL, "trace": "released-parameters"}])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("primal", settings, causal=False, rows=False, linear=False)


def scores(mechanism, inputs):
    """Projections and directions by hand, from evenly spaced samples of the input."""
    tokens = inputs.tokens.reshape(2, 10, 2, 4).transpose(1, 2)
    samples = tokens[:, :, [0, 1, 3, 5, 7, 9]]
    left, right = (
        torch.einsum("bhpd,hpr->bhdr", samples, weight)
        for weight in (mechanism.left_weight, mechanism.right_weight)
    )
    query, key = (nn.functional.normalize(each, dim=-1) for each in inputs[:2])
    return query @ left, key @ right, left, right


def test_the_output_by_hand(build, make_inputs):
    mechanism, inputs = build("primal", SMALL), make_inputs()
    left, right, _, _ = scores(mechanism, inputs)
    expected = mechanism.out(torch.cat([left, right], -1))
    assert torch.allclose(mechanism(inputs, {})[0], expected, atol=1e-10)


@pytest.mark.parametrize("trace", ["projected", "released-parameters"])
def test_the_loss_by_hand(trace, build, make_inputs):
    mechanism, inputs = (
        build("primal", {**SMALL, "trace": trace, "loss_weight": 0.3}),
        make_inputs(),
    )
    left, right, left_directions, right_directions = scores(mechanism, inputs)
    spectrum = mechanism.root_spectrum.square()
    energy = sum(torch.einsum("bhnr,hr->bh", each**2, spectrum) / 10 for each in (left, right))
    if trace == "projected":
        product = left_directions.mT @ right_directions
    else:
        product = (mechanism.left_weight.mT @ mechanism.right_weight).expand(2, 2, 2, 2)
    traces = product.diagonal(dim1=-2, dim2=-1).sum(-1)
    objective = (energy / 2 - traces).mean(-1)
    assert torch.allclose(mechanism.objective(inputs), objective, atol=1e-9)
    loss = mechanism(inputs, {})[1][AUXILIARY_LOSS]
    assert torch.allclose(loss, 0.3 * objective**2, rtol=1e-8)
    assert bool((loss >= 0).all())


def test_the_gradient_of_the_loss_vanishes_where_the_objective_does(build, make_inputs):
    mechanism, inputs = build("primal", SMALL), make_inputs(batch=1)
    with torch.no_grad():
        # J is 0 here though its own gradient isn't: the trace moves with the left directions.
        mechanism.root_spectrum.zero_()
        mechanism.left_weight.zero_()
    loss = mechanism(inputs, {})[1][AUXILIARY_LOSS]
    assert float(loss.detach()) == 0
    gradients = torch.autograd.grad(loss.sum(), mechanism.parameters(), allow_unused=True)
    assert all(each is None or bool((each == 0).all()) for each in gradients)
    objective = mechanism.objective(inputs).sum()
    assert bool((torch.autograd.grad(objective, mechanism.left_weight)[0] != 0).any())


def test_the_output_has_the_rank_of_the_scores(build, make_inputs):
    mechanism = build("primal", {"rank": 1, "samples_per_rank": 4})
    with torch.no_grad():
        mechanism.out.bias.zero_()
    output = mechanism(make_inputs(), {})[0]
    assert torch.equal(torch.linalg.matrix_rank(output, rtol=1e-9), torch.full((2, 2), 2))


def test_parameters_fit_any_number_of_tokens(build, make_inputs):
    mechanism = build("primal", SMALL)
    for tokens in (1, 5, 10, 33):
        assert mechanism(make_inputs(tokens=tokens), {})[0].shape == (2, 2, tokens, 4)
    assert build("primal", num_tokens=10).left_weight.shape == (2, 10, 20)
    assert build("primal", num_tokens=500).left_weight.shape == (2, 200, 20)


def test_starts_orthogonal(build):
    for weight in (
        build("primal", SMALL, noise=0).left_weight,
        build("primal", SMALL, noise=0).right_weight,
    ):
        assert torch.allclose(weight.mT @ weight, torch.eye(2).double(), atol=1e-6)


def test_weights_are_the_kernel(build, make_inputs):
    inputs = make_inputs()
    kernel = nn.functional.cosine_similarity(
        inputs.query.unsqueeze(-2), inputs.key.unsqueeze(-3), dim=-1
    )
    weights = build("primal", SMALL).explicit(inputs, {}).weights
    assert torch.allclose(weights, kernel, atol=1e-10)


def test_blocks_add_up_their_losses_for_a_trainer(build, make_inputs):
    """One number a sample, the same alone as in a batch, and no hook is left behind."""
    inputs = make_inputs()
    blocks = nn.ModuleList([build("primal", SMALL, noise=noise) for noise in (0.1, 0.2, 0.5)])
    state = {"values": inputs.value}
    with AuxiliaryLoss(blocks) as auxiliary:
        assert auxiliary.mean() == 0
        for each in blocks:
            _, state = each(inputs, state)
    single = [each(inputs, {})[1][AUXILIARY_LOSS] for each in blocks]
    assert torch.allclose(auxiliary.per_sample, sum(single))
    assert torch.allclose(auxiliary.mean(), sum(single).mean())
    assert auxiliary.per_sample.shape == (2,)
    assert state["values"] is inputs.value
    auxiliary.mean().backward()
    assert all(float(each.root_spectrum.grad.abs().max()) > 0 for each in blocks)
    assert not any(each._forward_hooks for each in blocks)


def test_models_without_such_a_loss_add_nothing(block):
    plain = build_mechanism("softmax", block(), {})
    assert isinstance(plain, SoftmaxAttention)
    with AuxiliaryLoss(plain) as auxiliary:
        pass
    assert auxiliary.mean() == 0


def test_a_width_that_heads_do_not_fill_is_refused():
    with pytest.raises(UsageError, match="must be 2 heads x 4, got 12"):
        build_mechanism("primal", LayerShape(12, 2, 4, 0, 1, 10), {})

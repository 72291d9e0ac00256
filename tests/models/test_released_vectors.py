"""The released implementation's own numbers, through the loader."""

import pytest
import torch
import torch.nn.functional as functional

KINDS = ["softmax", "elliptical_max", "elliptical_mean"]


def relative_error(actual, expected):
    return float((actual.double() - expected.double()).abs().max() / expected.double().abs().max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
def test_logits(kind, dtype, tolerance, vector_model, vectors):
    model = vector_model(kind).to(dtype)
    expected = vectors[f"logits_{kind}"]
    inputs = vectors["inputs"].to(dtype)
    with torch.no_grad():
        assert relative_error(model(inputs), expected) < tolerance
        assert relative_error(model.trace(inputs)[0], expected) < tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_input_gradients_with_the_metric_detached(kind, vector_model, vectors):
    model = vector_model(kind).double()
    inputs = vectors["inputs"].double().requires_grad_()
    loss = functional.cross_entropy(model(inputs), vectors["labels"], reduction="sum")
    (gradient,) = torch.autograd.grad(loss, inputs)
    # Stored in float32: half a unit in the last place of each number, plus a little.
    assert torch.allclose(gradient, vectors[f"input_grad_{kind}"].double(), rtol=1e-7, atol=1e-10)


def test_a_wrong_mechanism_is_far_off(vector_model, vectors):
    """What the tolerance must tell apart: the same weights under another attention."""
    with torch.no_grad():
        wrong = vector_model("softmax")(vectors["inputs"])
    assert relative_error(wrong, vectors["logits_elliptical_max"]) > 1e-3


def test_gradient_through_the_metric_differs_but_logits_do_not(vector_model, vectors):
    model = vector_model("elliptical_max").double()
    results = {}
    for mode in ("detached", "through"):
        model.set_gradient_mode(mode)
        inputs = vectors["inputs"].double().requires_grad_()
        logits = model(inputs)
        loss = functional.cross_entropy(logits, vectors["labels"], reduction="sum")
        results[mode] = logits.detach(), torch.autograd.grad(loss, inputs)[0]
        assert model.description.gradient_mode == mode
    assert torch.equal(results["detached"][0], results["through"][0])
    assert relative_error(results["through"][1], results["detached"][1]) > 1e-3

import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.nystromformer import iterative_inverse

ALL = {"landmarks": 10, "few_tokens": "approximate", "convolution": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {"landmarks": 5},
        {"landmarks": 4, "convolution": 3, "inverse": "exact"},  # segments of 2 and 3 tokens
        {"landmarks": 64, "convolution": 0},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("nystromformer", settings, causal=False, rows=False)


@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        ({"inverse": "exact"}, 1e-11),
        ({"iterations": 6}, 0.1),
        ({"iterations": 30}, 1e-9),
        ({"few_tokens": "softmax"}, 1e-14),
    ],
)
def test_as_many_landmarks_as_tokens_is_softmax(
    settings, tolerance, build, make_inputs, softmax_output
):
    inputs = make_inputs()
    output = build("nystromformer", {**ALL, **settings})(inputs, {})[0]
    assert torch.allclose(output, softmax_output(inputs), rtol=0, atol=tolerance)
    if tolerance == 0.1:
        assert not torch.allclose(output, softmax_output(inputs), rtol=0, atol=1e-4)


def test_rows_sum_to_one_with_an_exact_inverse_only(build, make_inputs):
    inputs = make_inputs()
    for inverse, exact in (("exact", True), ("iterative", False)):
        settings = {"landmarks": 5, "convolution": 0, "inverse": inverse}
        weights = build("nystromformer", settings).explicit(inputs, {}).weights
        ones = torch.ones(2, 2, 10).double()
        assert torch.allclose(weights.sum(-1), ones, atol=1e-10) == exact
        assert torch.allclose(weights.sum(-1), ones, atol=0.2)


@pytest.mark.parametrize("landmarks", [2, 3, 5])
def test_the_formula_by_hand(landmarks, build, make_inputs):
    inputs = make_inputs()
    settings = {"landmarks": landmarks, "convolution": 0, "inverse": "exact"}
    segments = [
        torch.arange(10)[torch.arange(10) * landmarks // 10 == each] for each in range(landmarks)
    ]
    assert {len(each) for each in segments} <= {10 // landmarks, -(-10 // landmarks)}
    query, key = (
        torch.stack([tensor[:, :, each].mean(-2) for each in segments], dim=-2)
        for tensor in inputs[:2]
    )
    left = (inputs.query @ key.mT / 2).softmax(-1)
    middle = (query @ key.mT / 2).softmax(-1)
    right = (query @ inputs.key.mT / 2).softmax(-1)
    expected = left @ torch.linalg.inv(middle) @ right @ inputs.value
    assert torch.allclose(build("nystromformer", settings)(inputs, {})[0], expected, atol=1e-9)


def test_iteration_converges_fast():
    matrices = (
        torch.randn(50, 8, 8, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    )
    errors = [
        float((matrices @ iterative_inverse(matrices, steps) - torch.eye(8)).abs().max())
        for steps in (6, 12, 24)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-9


def test_iteration_gives_the_pseudo_inverse_of_a_singular_matrix():
    matrix = torch.full((4, 4), 0.25).double()
    assert torch.allclose(iterative_inverse(matrix, 20), torch.linalg.pinv(matrix), atol=1e-12)


def test_only_the_released_start_couples_the_batch(build, make_inputs):
    inputs = make_inputs()
    others = inputs._replace(query=inputs.query.clone(), key=inputs.key.clone())
    others.query[1] *= 5
    others.key[1] *= 5
    for start, coupled in (("per-matrix", False), ("released-batch-maximum", True)):
        settings = {"landmarks": 5, "iterations": 2, "inverse_start": start}
        mechanism = build("nystromformer", settings)
        before, after = (mechanism(each, {})[0][0] for each in (inputs, others))
        assert torch.allclose(before, after, rtol=0, atol=1e-12) != coupled
    assert mechanism.flags.batch_coupled


def test_convolution_of_the_values_by_hand(build, make_inputs):
    inputs = make_inputs()
    settings = {"landmarks": 5, "convolution": 5}
    mechanism = build("nystromformer", settings)
    kernel = mechanism.convolution.weight.detach().reshape(2, 5)
    expected = torch.zeros_like(inputs.value)
    for place in range(10):
        for step in range(5):
            source = place + step - 2
            if 0 <= source < 10:
                expected[:, :, place] += kernel[:, step, None] * inputs.value[:, :, source]
    without = build("nystromformer", {**settings, "convolution": 0})(inputs, {})[0]
    assert torch.allclose(mechanism(inputs, {})[0] - without, expected, atol=1e-13)


def test_even_convolutions_are_refused(build):
    with pytest.raises(UsageError, match="convolution: must be odd, or 0 for none, got 4"):
        build("nystromformer", {"convolution": 4})

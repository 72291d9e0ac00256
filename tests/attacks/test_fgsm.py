import pytest
import torch

from robustbench_elliptical.attacks import fgsm

WEIGHTS = torch.tensor([[0.0, 0.0, 0.0, 0.0], [3.0, -4.0, 0.0, 12.0]], dtype=torch.float64)
PIXELS = torch.tensor([[0.5, 0.5, 0.5, 0.5], [0.5, 0.02, 0.5, 0.97]], dtype=torch.float64)
LABELS = torch.tensor([0, 0])


def linear(images):
    return images @ WEIGHTS.T


@pytest.mark.parametrize("loss", ["cross-entropy", "margin"])
def test_linf_on_a_linear_model_is_the_signed_step_clamped_to_the_box(loss):
    result = fgsm(linear, PIXELS, LABELS, epsilon=0.1, loss=loss)
    expected = torch.tensor([[0.6, 0.4, 0.5, 0.6], [0.6, 0.0, 0.5, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(result, expected, atol=1e-12, rtol=0)


def test_l2_on_a_linear_model_is_the_unit_gradient_clamped_to_the_box():
    result = fgsm(linear, PIXELS, LABELS, epsilon=0.13, norm="l2")
    step = 0.13 * torch.tensor([3.0, -4.0, 0.0, 12.0], dtype=torch.float64) / 13
    torch.testing.assert_close(result, (PIXELS + step).clamp(0, 1), atol=1e-12, rtol=0)
    assert result[1, 1] == 0
    assert result[1, 3] == 1


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_targeted_goes_the_other_way(norm):
    away = fgsm(linear, PIXELS[:1], LABELS[:1], epsilon=0.1, norm=norm)
    toward = fgsm(linear, PIXELS[:1], LABELS[:1], epsilon=0.1, norm=norm, targeted=True)
    torch.testing.assert_close(toward - PIXELS[:1], PIXELS[:1] - away, atol=1e-12, rtol=0)


def test_one_forward_and_one_backward_each(counter):
    oracle = counter(lambda images, rows: linear(images), 2)
    fgsm(oracle, PIXELS, LABELS, epsilon=0.1)
    assert oracle.forwards.tolist() == [1, 1]
    assert oracle.backwards.tolist() == [1, 1]


def test_no_gradient_is_an_error_that_names_the_way_out():
    with pytest.raises(ValueError, match=r"gives no gradient .* use an attack that needs none"):
        fgsm(lambda images: linear(images.detach()), PIXELS, LABELS, epsilon=0.1)


def test_saturated_cross_entropy_gives_no_step_where_the_margin_still_does(two_logits):
    sure = two_logits(lambda images: images.sum(1) - 1e5)
    assert torch.equal(fgsm(sure, PIXELS, LABELS, epsilon=0.1), PIXELS)
    moved = fgsm(sure, PIXELS, LABELS, epsilon=0.1, loss="margin")
    torch.testing.assert_close(moved, (PIXELS + 0.1).clamp(max=1))

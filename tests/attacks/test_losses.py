import pytest
import torch

from robustbench_elliptical.attacks.losses import (
    cross_entropy,
    dlr,
    is_fooled,
    loss_values,
    margin,
)

LOGITS = torch.tensor([[4.0, 1.0, 2.0, 0.0], [1.0, 5.0, -1.0, 3.0]], dtype=torch.float64)
LABELS = torch.tensor([0, 3])


def test_margin_by_hand():
    assert margin(LOGITS, LABELS).tolist() == [-2.0, 2.0]
    assert margin(LOGITS, torch.tensor([2, 1]), targeted=True).tolist() == [-2.0, 2.0]


def test_cross_entropy_by_hand():
    expected = LOGITS.exp().sum(1).log() - torch.tensor([4.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(cross_entropy(LOGITS, LABELS), expected)
    torch.testing.assert_close(cross_entropy(LOGITS, LABELS, targeted=True), -expected)


def test_dlr_is_equation_6():
    # -(z_y - max other) / (largest - third largest)
    expected = torch.tensor([-(4 - 2) / (4 - 1), -(3 - 5) / (5 - 1)], dtype=torch.float64)
    torch.testing.assert_close(dlr(LOGITS, LABELS), expected)


def test_targeted_dlr_is_equation_7_with_the_strongest_other_class_as_y():
    # -(z_y - z_t) / (largest - mean of third and fourth largest), y = 0 and 1
    targets = torch.tensor([1, 0])
    expected = torch.tensor([-(4 - 1) / (4 - 0.5), -(5 - 1) / (5 - 0)], dtype=torch.float64)
    torch.testing.assert_close(dlr(LOGITS, targets, targeted=True), expected)


def test_dlr_does_not_change_with_the_scale_of_the_logits():
    torch.testing.assert_close(dlr(100 * LOGITS, LABELS), dlr(LOGITS, LABELS))


def test_three_classes_are_enough_for_dlr_and_four_if_targeted():
    expected = torch.tensor([-2 / 3, -4 / 6], dtype=torch.float64)
    torch.testing.assert_close(dlr(LOGITS[:, :3], torch.tensor([0, 1])), expected)
    assert dlr(LOGITS, LABELS, targeted=True).shape == (2,)


def test_dlr_of_tied_logits_is_finite():
    assert dlr(torch.zeros(1, 4), torch.tensor([0])).item() == 0


@pytest.mark.parametrize("name", ["cross-entropy", "margin", "dlr"])
@pytest.mark.parametrize("targeted", [False, True])
def test_every_loss_rises_toward_success(name, targeted):
    logits = LOGITS.clone().requires_grad_()
    values = loss_values(name, logits, LABELS, targeted=targeted)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    of_label = gradient.gather(1, LABELS.unsqueeze(1))
    assert ((of_label > 0) if targeted else (of_label < 0)).all()


def test_fooled_by_the_prediction_and_never_by_broken_logits():
    logits = torch.tensor([[1.0, 2.0], [2.0, 1.0], [float("nan"), 0.0], [0.0, float("inf")]])
    labels = torch.tensor([0, 0, 1, 0])
    assert is_fooled(logits, labels, targeted=False).tolist() == [True, False, False, False]
    assert is_fooled(logits, 1 - labels, targeted=True).tolist() == [True, False, False, False]

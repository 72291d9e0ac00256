import pytest
import torch

from robustbench_elliptical.evaluation.images.counter import CountingOracle
from robustbench_elliptical.evaluation.images.verification import verify


def judge(model, batch, points, epsilon=0.1, norm="linf"):
    oracle = CountingOracle(model.eval(), batch.sample_ids, torch.device("cpu"))
    rows = torch.arange(len(batch.labels))
    return verify(oracle, batch.images, points, batch.labels, rows, epsilon=epsilon, norm=norm)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda image: image + 0.11, "the attack left the linf ball"),
        (lambda image: image * 0 - 0.01, "the attack left the pixel range"),
        (lambda image: image * 0 + 1.01, "the attack left the pixel range"),
        (lambda image: image * float("nan"), "the attack returned values that are not finite"),
        (lambda image: image + float("inf"), "the attack returned values that are not finite"),
    ],
)
def test_a_cheating_attack_is_a_failure_of_that_sample_only(model, batch, spoil, reason):
    points = batch.images.clone()
    points[5] = spoil(points[5])
    verdict = judge(model, batch, points)
    assert verdict.failed.nonzero().flatten().tolist() == [5]
    assert verdict.reasons[5] == reason
    assert not verdict.fooled[5]
    assert verdict.fooled.nonzero().flatten().tolist() == [0, 1]


def test_tolerance_is_a_rounding_not_a_loophole(model, batch):
    points = batch.images + 0.1
    assert not judge(model, batch, points, epsilon=0.1).failed.any()
    assert judge(model, batch, points, epsilon=0.1 - 2e-6).failed.all()


def test_l2_distance(model, batch):
    points = batch.images + 0.05
    verdict = judge(model, batch, points, epsilon=0.1, norm="l2")
    torch.testing.assert_close(
        verdict.distances, torch.full((16,), 0.1, dtype=torch.float64), atol=1e-6, rtol=0
    )
    assert judge(model, batch, points, epsilon=0.09, norm="l2").failed.all()


def test_another_shape_is_a_defect_of_the_attack(model, batch):
    with pytest.raises(RuntimeError, match=r"returned shape \(15, 1, 2, 2\)"):
        judge(model, batch, batch.images[1:])


def test_counts_are_the_passes_asked(model, batch):
    oracle = CountingOracle(model.eval(), batch.sample_ids, torch.device("cpu"))
    rows = torch.tensor([3, 3, 7])
    images = batch.images[rows].requires_grad_()
    oracle.logits(images, rows)
    logits = oracle.logits(images, rows)
    torch.autograd.grad(logits.sum(), images)
    assert oracle.forwards[[3, 7, 0]].tolist() == [4, 2, 0]
    assert oracle.backwards[[3, 7, 0]].tolist() == [2, 1, 0]

import pytest
import torch

from robustbench_elliptical.attacks import noise

MIDDLE = torch.full((4, 3, 5, 5), 0.5, dtype=torch.float64)
LABELS = torch.zeros(4, dtype=torch.int64)


def untouchable(images):
    raise AssertionError("noise must not ask the model")


def offsets(**settings):
    return noise(untouchable, MIDDLE, LABELS, **settings) - MIDDLE


def test_linf_signs_move_every_pixel_by_epsilon_both_ways():
    moved = offsets(epsilon=0.1)
    torch.testing.assert_close(moved.abs(), torch.full_like(moved, 0.1))
    assert 0.3 < (moved > 0).double().mean() < 0.7


def test_linf_uniform_fills_the_ball():
    moved = offsets(epsilon=0.1, kind="uniform")
    assert moved.abs().max() <= 0.1
    torch.testing.assert_close(moved.std(), torch.tensor(0.2 / 12**0.5).double(), rtol=0.1, atol=0)


@pytest.mark.parametrize("kind", ["sign", "uniform"])
def test_l2_noise_is_epsilon_long(kind):
    lengths = offsets(epsilon=0.7, norm="l2", kind=kind).flatten(1).norm(dim=1)
    torch.testing.assert_close(lengths, torch.full_like(lengths, 0.7))


@pytest.mark.parametrize("kind", ["sign", "uniform"])
def test_samples_and_seeds_get_noise_of_their_own(kind):
    moved = offsets(epsilon=0.1, kind=kind)
    assert not torch.equal(moved[0], moved[1])
    assert not torch.equal(moved, offsets(epsilon=0.1, kind=kind, seed=1))
    same_ids = offsets(epsilon=0.1, kind=kind, sample_ids=["a", "a", "b", "c"])
    assert torch.equal(same_ids[0], same_ids[1])


def test_noise_is_clamped_to_the_box():
    white = torch.ones(2, 8)
    result = noise(untouchable, white, LABELS[:2], epsilon=0.1)
    torch.testing.assert_close(result.unique(), torch.tensor([0.9, 1.0]))

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_elliptical.attacks.projections import (
    project,
    round_toward,
    sample_lengths,
    scaled_direction,
)


def test_linf_projection_is_the_clamp_to_ball_and_box():
    points = torch.tensor([[0.9, 0.0, 1.4, 0.52]])
    origins = torch.tensor([[0.5, 0.05, 0.95, 0.5]])
    expected = torch.tensor([[0.6, 0.0, 1.0, 0.52]])
    torch.testing.assert_close(project(points, origins, 0.1, "linf"), expected)


def test_l2_projection_shortens_what_is_too_long_and_nothing_else():
    origins = torch.full((2, 2), 0.5, dtype=torch.float64)
    points = origins + torch.tensor([[0.3, 0.4], [0.03, 0.04]], dtype=torch.float64)
    result = project(points, origins, 0.1, "l2") - origins
    expected = torch.tensor([[0.06, 0.08], [0.03, 0.04]], dtype=torch.float64)
    torch.testing.assert_close(result, expected)


def test_l2_projection_of_a_large_float32_image_keeps_the_radius():
    generator = torch.Generator().manual_seed(0)
    origins = 0.5 + 0.01 * torch.rand(2, 3, 224, 224, generator=generator)
    points = origins + torch.randn(origins.shape, generator=generator)
    result = project(points, origins, 5.0, "l2")
    lengths = (result.double() - origins.double()).flatten(1).norm(dim=1)
    assert (lengths <= 5.0 + 1e-6).all()
    assert (lengths >= 5.0 - 1e-5).all()


def test_directions():
    gradient = torch.tensor([[3.0, -4.0, 0.0]], dtype=torch.float64)
    assert scaled_direction(gradient, 0.5, "linf").tolist() == [[0.5, -0.5, 0.0]]
    torch.testing.assert_close(
        scaled_direction(gradient, 0.5, "l2"),
        torch.tensor([[0.3, -0.4, 0.0]], dtype=torch.float64),
    )


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_zero_nan_and_tiny_gradients(norm):
    gradient = torch.tensor([[0.0, 0.0], [float("nan"), float("nan")], [1e-30, 0.0], [1e-44, 0.0]])
    step = scaled_direction(gradient, 0.5, norm)
    assert step[:2].eq(0).all()
    torch.testing.assert_close(step[2], torch.tensor([0.5, 0.0]))
    assert torch.isfinite(step[3]).all()
    assert step[3].abs().max() <= 0.5


def test_lengths_are_euclidean():
    assert sample_lengths(torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])).tolist() == [5.0]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), dtype=st.sampled_from([torch.float16, torch.bfloat16]))
def test_rounding_never_moves_away_from_the_origin(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    origins = torch.rand(1, 64, generator=generator).to(dtype)
    origins[0, :2] = torch.tensor([0.0, 1.0])
    points = (origins + 0.1 * torch.randn(1, 64, generator=generator)).float().clamp(0, 1)
    rounded = round_toward(points, origins.float(), dtype)
    assert rounded.dtype == dtype
    offsets, wanted = rounded.float() - origins.float(), points - origins.float()
    assert (offsets.abs() <= wanted.abs()).all()
    assert (offsets * wanted >= 0).all()
    unit = torch.finfo(dtype).eps
    assert ((offsets - wanted).abs() <= unit).all()

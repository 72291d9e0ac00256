import numpy as np
import torch

from robustbench_elliptical.attacks.draws import packed_signs, random_point, unpack_signs
from robustbench_elliptical.core.randomness import keyed_signs


def test_packed_signs_are_the_keyed_signs():
    packed = packed_signs(3, "use", [5, 6], (4, 2, 8), 1)
    signs = unpack_signs(packed, (2, 8), torch.float64)
    expected = keyed_signs(3, "use", [5, 6], (4, 2, 8), 1)
    np.testing.assert_array_equal(signs.numpy(), expected)


def test_signs_of_shapes_that_fill_no_byte_are_balanced_and_independent():
    signs = unpack_signs(packed_signs(0, "use", [1], (4000, 3)), (3,), torch.float64)[0]
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    moments = signs.T @ signs / 4000
    torch.testing.assert_close(moments, torch.eye(3, dtype=torch.float64), atol=0.08, rtol=0)
    assert signs.mean(0).abs().max() < 0.08


def draw(norm, pixels, count=2000, epsilon=0.2):
    origins = torch.full((count, pixels), 0.5, dtype=torch.float64)
    points = random_point(
        origins, range(count), epsilon=epsilon, norm=norm, seed=0, stream="s", restart=0
    )
    return points - origins


def test_linf_starts_are_uniform_in_the_cube():
    offsets = draw("linf", 2)
    assert offsets.abs().max() <= 0.2
    torch.testing.assert_close(offsets.var(), torch.tensor(0.4**2 / 12).double(), rtol=0.1, atol=0)


def test_l2_starts_are_uniform_in_the_ball():
    lengths = draw("l2", 3).norm(dim=1) / 0.2
    assert lengths.max() <= 1
    # The share of the ball's volume inside radius r is r^3.
    shares = (lengths**3).sort().values
    uniform = torch.arange(1, 2001).double() / 2000
    assert (shares - uniform).abs().max() < 0.05

import pytest
import torch

from robustbench_elliptical.attacks import noise, spsa
from robustbench_elliptical.attacks.draws import packed_signs
from robustbench_elliptical.attacks.spsa_gradient import estimate_gradient

POINTS = torch.tensor(
    [[0.30, 0.41, 0.52, 0.27, 0.38, 0.33, 0.46, 0.29], [0.5] * 8], dtype=torch.float64
)
WEIGHTS = torch.linspace(-2, 3, 8, dtype=torch.float64)
CURVATURE = torch.outer(WEIGHTS, WEIGHTS.flip(0)) + torch.eye(8, dtype=torch.float64)


def linear(images):
    return images @ WEIGHTS


def quadratic(images):
    return ((images @ CURVATURE) * images).sum(1) + linear(images)


def expected_estimate(function, points, **settings):
    """The estimator's expectation: all 256 sign patterns of eight pixels, each once."""
    patterns = torch.arange(256, dtype=torch.uint8).view(1, 256, 1)
    return estimate_gradient(
        lambda probes, which: function(probes),
        points,
        lambda start, stop: patterns.expand(stop - start, -1, -1),
        samples=256,
        **({"delta": 0.01, "max_rows": 4096} | settings),
    )


def autograd(function, points):
    leaf = points.clone().requires_grad_()
    return torch.autograd.grad(function(leaf).sum(), leaf)[0]


@pytest.mark.parametrize("function", [linear, quadratic])
@pytest.mark.parametrize("max_rows", [2, 100, 512, 4096])
def test_the_estimate_is_the_gradient_at_the_point_in_expectation(function, max_rows):
    estimate = expected_estimate(function, POINTS, max_rows=max_rows)
    torch.testing.assert_close(estimate, autograd(function, POINTS), atol=1e-9, rtol=0)


def test_an_estimate_at_twice_the_point_fails_that_check():
    at_twice = expected_estimate(lambda images: quadratic(2 * images), POINTS) / 2
    gap = (at_twice - autograd(quadratic, POINTS)).abs().max()
    assert gap > 1
    torch.testing.assert_close(at_twice, autograd(quadratic, 2 * POINTS), atol=1e-9, rtol=0)


def test_the_estimate_does_not_shrink_with_delta():
    coarse = expected_estimate(linear, POINTS, delta=0.1)
    fine = expected_estimate(linear, POINTS, delta=0.001)
    torch.testing.assert_close(coarse, fine, atol=1e-9, rtol=0)


def test_clamped_probes_still_give_the_gradient_of_a_linear_loss():
    edges = torch.tensor([[0.0, 1.0, 0.004, 0.998, 0.5, 0.0, 1.0, 0.3]], dtype=torch.float64)

    def linear_inside(images):
        assert images.min() >= 0
        assert images.max() <= 1
        return linear(images)

    estimate = expected_estimate(linear_inside, edges)
    torch.testing.assert_close(estimate[0], WEIGHTS, atol=1e-9, rtol=0)


def test_drawn_directions_converge_to_the_gradient():
    estimate = estimate_gradient(
        lambda probes, which: quadratic(probes),
        POINTS,
        lambda start, stop: packed_signs(0, "test", range(start, stop), (20_000, 8)),
        samples=20_000,
        delta=0.01,
        max_rows=8192,
    )
    exact = autograd(quadratic, POINTS)
    error = (estimate - exact).norm() / exact.norm()
    assert error < 0.05


def test_a_pair_without_a_finite_difference_is_left_out():
    def broken(images):
        return torch.where(images[:, 0] > POINTS[0, 0], float("nan"), linear(images))

    assert expected_estimate(broken, POINTS[:1]).eq(0).all()


def test_each_probe_is_charged_to_its_point():
    def loss(probes, which):
        return which.double() * probes.sum(1)

    patterns = torch.arange(256, dtype=torch.uint8).view(1, 256, 1).expand(2, -1, -1)
    estimate = estimate_gradient(
        loss, POINTS, lambda a, b: patterns[a:b], samples=256, delta=0.01, max_rows=300
    )
    expected = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, 8)
    torch.testing.assert_close(estimate, expected, atol=1e-9, rtol=0)


SETTINGS = {"epsilon": 0.3, "steps": 6, "samples": 5, "learning_rate": 0.05, "delta": 0.01}
LABELS = torch.tensor([0, 0])


@pytest.mark.parametrize("max_rows", [2, 7, 10, 16, 256])
def test_queries_lie_around_the_current_iterate_and_count_as_documented(
    two_logits, counter, max_rows
):
    oracle = counter(two_logits(lambda images, rows: linear(images) - 50), 2)
    inputs = POINTS.clone()
    inputs[1, :2] = torch.tensor([0.0, 1.0])
    spsa(oracle, inputs, LABELS, max_rows=max_rows, **SETTINGS)
    assert max(oracle.sizes) <= max_rows
    assert oracle.forwards.tolist() == [6 * (2 * 5 + 1) + 1] * 2
    assert oracle.backwards.tolist() == [0, 0]
    for origin, queries in zip(inputs, oracle.queries, strict=True):
        assert torch.equal(queries[0], origin)
        for start in range(0, len(queries) - 1, 11):
            iterate, probes = queries[start], torch.stack(queries[start + 1 : start + 11])
            assert (iterate - origin).abs().max() <= 0.3 + 1e-12
            expected = torch.stack([(iterate - 0.01).clamp(0, 1), (iterate + 0.01).clamp(0, 1)])
            apart = (probes.unsqueeze(1) - expected).abs().amin(dim=1)
            assert apart.max() < 1e-12
            assert len(probes.unique(dim=0)) > 5
        # The iterates have left the original by more than a probe does.
        assert (queries[-1] - origin).abs().max() > 0.1


def test_max_rows_does_not_change_the_result(two_logits):
    model = two_logits(lambda images: quadratic(images) - 50)
    results = [
        spsa(model, POINTS, LABELS, max_rows=max_rows, **SETTINGS) for max_rows in (2, 7, 256)
    ]
    torch.testing.assert_close(results[0], results[1], atol=1e-9, rtol=0)
    torch.testing.assert_close(results[0], results[2], atol=1e-9, rtol=0)


def test_reaches_the_corner_of_a_linear_model(two_logits):
    model = two_logits(lambda images: linear(images) - 50)
    result = spsa(model, POINTS, LABELS, epsilon=0.1, samples=64, steps=60)
    expected = POINTS + 0.1 * WEIGHTS.sign()
    strong = WEIGHTS.abs() > 0.5
    torch.testing.assert_close(result[:, strong], expected[:, strong], atol=0.01, rtol=0)


def test_a_fooled_sample_stops(two_logits, counter):
    thresholds = torch.tensor([-9.0, 1.0, 50.0], dtype=torch.float64)
    oracle = counter(
        two_logits(lambda images, rows: images[:, 0] + 0 * rows - thresholds[rows] + 0.45), 3
    )
    inputs = torch.full((3, 1), 0.5, dtype=torch.float64)
    result = spsa(oracle, inputs, torch.zeros(3, dtype=torch.int64), **SETTINGS)
    # One pixel: the estimate is exact and Adam's first steps are the learning rate.
    assert oracle.forwards.tolist() == [1, 2 * 11 + 1, 6 * 11 + 1]
    torch.testing.assert_close(result[:2, 0], torch.tensor([0.5, 0.6]).double(), atol=1e-3, rtol=0)


def test_gradients_are_never_asked(two_logits):
    def model(images):
        assert not torch.is_grad_enabled()
        assert not images.requires_grad
        return torch.stack([torch.zeros(len(images)), images.sum(1).float() - 50], dim=1)

    spsa(model, POINTS, LABELS, **SETTINGS)


def test_random_start_begins_elsewhere_in_the_ball(two_logits, counter):
    oracle = counter(two_logits(lambda images, rows: linear(images) - 50), 2)
    spsa(oracle, POINTS, LABELS, random_start=True, **SETTINGS)
    start = oracle.queries[0][0] - POINTS[0]
    assert 0.05 < start.abs().max() <= 0.3


def test_breaks_a_network_that_noise_does_not(trained):
    model, pictures, labels = trained
    epsilon = 0.08
    with torch.no_grad():
        noisy = model(noise(model, pictures, labels, epsilon=epsilon)).argmax(1) == labels
        attacked = spsa(model, pictures, labels, epsilon=epsilon, samples=32, steps=20)
        robust = model(attacked).argmax(1) == labels
    assert noisy.float().mean() > 0.9
    assert robust.float().mean() < 0.3

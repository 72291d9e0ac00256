import pytest
import torch

from robustbench_elliptical.attacks import pgd

SLOPE = torch.tensor([3.0, -4.0, 0.0, 12.0], dtype=torch.float64)
PIXELS = torch.tensor([[0.5, 0.5, 0.5, 0.5], [0.5, 0.02, 0.5, 0.97]], dtype=torch.float64)
LABELS = torch.tensor([0, 0])


def one_pixel(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def test_linf_on_a_linear_model_is_the_corner_clamped_to_the_box(two_logits):
    resisting = two_logits(lambda images: images @ SLOPE - 50)
    result = pgd(resisting, PIXELS, LABELS, epsilon=0.1, loss="margin")
    expected = (PIXELS + 0.1 * SLOPE.sign()).clamp(0, 1)
    moving = SLOPE != 0
    torch.testing.assert_close(result[:, moving], expected[:, moving], atol=1e-12, rtol=0)


def test_l2_on_a_linear_model_is_the_unit_gradient(two_logits):
    resisting = two_logits(lambda images: images @ SLOPE - 50)
    result = pgd(
        resisting,
        PIXELS[:1],
        LABELS[:1],
        epsilon=0.13,
        norm="l2",
        random_start=False,
        loss="margin",
    )
    torch.testing.assert_close(result, PIXELS[:1] + 0.01 * SLOPE, atol=1e-12, rtol=0)


def test_l2_on_a_linear_model_in_a_corner_of_the_box(two_logits):
    resisting = two_logits(lambda images: images @ SLOPE - 50)
    origin = PIXELS[1:]
    settings = {"norm": "l2", "steps": 600, "step_size": 0.005, "loss": "margin"}
    result = pgd(resisting, origin, LABELS[:1], epsilon=0.13, **settings)
    # The optimum is clamp(x + c * slope) with c such that its distance is epsilon.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        best = (origin + middle * SLOPE).clamp(0, 1)
        low, high = (middle, high) if (best - origin).norm() < 0.13 else (low, middle)
    assert best[0, 1] == 0
    assert best[0, 3] == 1
    gained, possible = (result - origin) @ SLOPE, (best - origin) @ SLOPE
    torch.testing.assert_close(gained, possible, rtol=0.01, atol=0)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("random_start", [False, True])
def test_reaches_the_optimum_of_a_concave_loss(two_logits, norm, random_start):
    goal = torch.tensor([0.9, 0.2, 0.52, 0.5], dtype=torch.float64)
    model = two_logits(lambda images: -(images - goal).square().sum(1) - 1)
    origin = PIXELS[:1]
    result = pgd(
        model,
        origin,
        LABELS[:1],
        epsilon=0.1,
        norm=norm,
        steps=400,
        step_size=0.001,
        random_start=random_start,
        loss="margin",
    )
    if norm == "linf":
        expected = goal.clamp(origin - 0.1, origin + 0.1)
    else:
        expected = origin + 0.1 * (goal - origin) / (goal - origin).norm()
    torch.testing.assert_close(result, expected, atol=1.5e-3, rtol=0)


def test_returns_the_best_iterate_where_the_last_is_worse(two_logits):
    model = two_logits(lambda images: -(images[:, 0] - 0.55).abs() - 1)
    settings = {"epsilon": 0.4, "step_size": 0.3, "random_start": False, "loss": "margin"}
    for steps in (1, 2, 3):  # The iterates are 0.5, 0.8, 0.5, 0.8.
        result = pgd(model, one_pixel(0.5), LABELS[:1], steps=steps, **settings)
        assert result.item() == 0.5


def test_returns_the_first_iterate_that_fools_although_later_ones_do_not(two_logits):
    def bump(images):
        pixel = images[:, 0]
        return torch.where((pixel > 0.65) & (pixel < 0.75), 1.0, -1.0) + 0 * pixel + pixel

    result = pgd(
        two_logits(lambda images: bump(images) - 0.9),
        one_pixel(0.5),
        LABELS[:1],
        epsilon=0.4,
        steps=4,
        step_size=0.1,
        random_start=False,
        loss="margin",
    )
    torch.testing.assert_close(result, one_pixel(0.7))


def two_basins(images):
    """A hill of height -2 at 0.2 and one of height 1 at 0.8."""
    pixel = images[:, 0]
    return torch.maximum(-2 - 10 * (pixel - 0.2).abs(), 1 - 10 * (pixel - 0.8).abs() * 2)


def test_restarts_keep_the_worst_of_each_sample(two_logits):
    model = two_logits(two_basins)
    inputs, labels = one_pixel(*[0.5] * 40), torch.zeros(40, dtype=torch.int64)
    settings = {"epsilon": 0.4, "step_size": 0.02, "steps": 40, "loss": "margin"}
    fooled = {}
    results = {}
    for restarts in (1, 2, 12):
        results[restarts] = pgd(model, inputs, labels, restarts=restarts, **settings)
        fooled[restarts] = model(results[restarts]).argmax(1) == 1
    assert 0 < fooled[1].sum() < fooled[2].sum() < 40
    assert fooled[12].all()
    assert torch.equal(results[1][fooled[1]], results[12][fooled[1]])


def test_restarts_keep_the_highest_loss_where_nothing_fools(two_logits):
    model = two_logits(lambda images: two_basins(images) - 5)
    inputs, labels = one_pixel(*[0.5] * 20), torch.zeros(20, dtype=torch.int64)
    settings = {"epsilon": 0.4, "step_size": 0.01, "steps": 60, "loss": "margin"}
    once = pgd(model, inputs, labels, **settings)
    assert (once < 0.4).any()
    often = pgd(model, inputs, labels, restarts=12, **settings)
    torch.testing.assert_close(often, torch.full_like(often, 0.8), atol=0.011, rtol=0)


THRESHOLDS = torch.tensor([0.05, 0.15, 0.35, 9.0], dtype=torch.float64)


def climbing(images, rows):
    """With steps of 0.1 from 0.1, iterate 0, 1, 3 and none fool rows 0, 1, 2 and 3."""
    return images[:, 0] - THRESHOLDS[rows]


CLIMB = {"epsilon": 0.8, "steps": 5, "step_size": 0.1, "random_start": False, "loss": "margin"}


def test_a_fooled_sample_costs_no_more_passes(two_logits, counter):
    oracle = counter(two_logits(climbing), 4)
    result = pgd(oracle, one_pixel(*[0.1] * 4), torch.zeros(4, dtype=torch.int64), **CLIMB)
    assert oracle.forwards.tolist() == [1, 2, 4, 6]
    # Its last pass is shared with samples that go on, hence one backward more than steps.
    assert oracle.backwards.tolist() == [1, 2, 4, 5]
    torch.testing.assert_close(result, one_pixel(0.1, 0.2, 0.4, 0.6))


@pytest.mark.parametrize(("row", "forwards", "backwards"), [(0, 1, 0), (1, 2, 1), (2, 4, 3)])
def test_a_fooled_sample_alone_needs_no_last_backward(
    two_logits, counter, row, forwards, backwards
):
    oracle = counter(two_logits(lambda images, rows: climbing(images, rows + row)), 1)
    pgd(oracle, one_pixel(0.1), torch.tensor([0]), **CLIMB)
    assert oracle.forwards.tolist() == [forwards]
    assert oracle.backwards.tolist() == [backwards]


def test_a_resisting_sample_costs_what_is_documented_with_restarts(two_logits, counter):
    oracle = counter(two_logits(climbing), 4)
    settings = CLIMB | {"restarts": 3}
    pgd(oracle, one_pixel(*[0.1] * 4), torch.zeros(4, dtype=torch.int64), **settings)
    assert oracle.forwards.tolist() == [1, 2, 4, 3 * 6]
    assert oracle.backwards.tolist() == [1, 2, 4, 3 * 5]


def test_random_start_differs_by_restart_seed_and_sample(two_logits, counter):
    def starts(**settings):
        oracle = counter(two_logits(lambda images, rows: images[:, 0] - 9), 2)
        labels = torch.tensor([0, 0])
        pgd(oracle, one_pixel(0.5, 0.5), labels, epsilon=0.3, steps=1, **settings)
        return [query.item() for row in oracle.queries for query in row[::2]]

    first = starts(restarts=2)
    assert len({*first, *starts(restarts=2, seed=1)}) == 8
    assert first == starts(restarts=2)


def test_default_step_size_is_the_documented_rule(two_logits, counter):
    oracle = counter(two_logits(lambda images, rows: images[:, 0] - 9), 1)
    pgd(oracle, one_pixel(0.5), torch.tensor([0]), epsilon=0.2, steps=10, random_start=False)
    torch.testing.assert_close(oracle.queries[0][1] - 0.5, torch.tensor([0.05]).double())

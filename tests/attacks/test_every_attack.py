"""What holds for every registered attack, in every norm that it knows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_elliptical.attacks import ATTACKS, parse_attack
from robustbench_elliptical.attacks.problem import input_gradient

SPECS = [
    "noise",
    "noise:norm=l2,kind=uniform",
    "fgsm",
    "fgsm:norm=l2,loss=margin",
    "pgd:steps=4,restarts=2",
    "pgd:steps=4,norm=l2,loss=dlr",
    "spsa:steps=3,samples=4,max_rows=20",
    "spsa:steps=2,samples=4,random_start=true",
]
IDS = ["a", "b", "c", "d", "e", "f"]
each_attack = pytest.mark.parametrize("spec", SPECS)


def radius(choice):
    return 0.05 if choice.norm == "linf" else 0.15


def test_every_registered_attack_and_norm_is_among_them():
    covered = {(choice.name, choice.norm) for choice in map(parse_attack, SPECS)}
    assert covered == {(name, norm) for name in ATTACKS for norm in ATTACKS[name].norms}


@each_attack
@pytest.mark.parametrize("share", [1, 4])
def test_results_do_not_depend_on_batch_or_order(spec, share, mlp, images):
    """At the larger radius some samples are fooled midway and leave the batch."""
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)
    epsilon = share * radius(choice)

    def run(rows):
        ids = [IDS[row] for row in rows]
        return choice.run(mlp, images[rows], labels[rows], epsilon=epsilon, seed=7, sample_ids=ids)

    whole = run([0, 1, 2, 3, 4, 5])
    assert not torch.equal(whole, images)
    for rows in ([0], [1], [2], [3], [4], [5], [4, 1, 3], [5, 4, 3, 2, 1, 0]):
        torch.testing.assert_close(run(rows), whole[rows], atol=1e-10, rtol=0)


@pytest.mark.parametrize("spec", ["pgd:restarts=3,steps=2", "spsa:steps=3,samples=4"])
def test_a_sample_draws_the_same_after_others_have_left(spec, counter, two_logits):
    choice = parse_attack(spec)
    pixels = torch.full((3, 5), 0.5, dtype=torch.float64)

    def queries(rows):
        heights = torch.tensor([9.0, -9.0, -9.0], dtype=torch.float64)[rows]
        model = two_logits(lambda points, which: points.square().sum(1) + heights[which])
        oracle = counter(model, len(rows))
        ids = [IDS[row] for row in rows]
        labels = torch.zeros(len(rows), dtype=torch.int64)
        choice.run(oracle, pixels[rows], labels, epsilon=0.1, sample_ids=ids)
        return torch.stack(oracle.queries[-1])

    torch.testing.assert_close(queries([0, 1, 2]), queries([2]), atol=1e-10, rtol=0)


@each_attack
def test_ids_default_to_the_position(spec, mlp, images):
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)
    ids = [str(row) for row in range(6)]
    named = choice.run(mlp, images, labels, epsilon=radius(choice), sample_ids=ids)
    assert torch.equal(choice.run(mlp, images, labels, epsilon=radius(choice)), named)


@each_attack
def test_global_generators_are_neither_read_nor_written(spec, mlp, images):
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)
    results = []
    legacy = np.random.get_state()[1].copy()
    for seed in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            results.append(choice.run(mlp, images, labels, epsilon=radius(choice)))
            assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*results)
    np.testing.assert_array_equal(np.random.get_state()[1], legacy)


@each_attack
def test_epsilon_zero_returns_the_inputs_without_asking(spec, counter, mlp, images):
    choice = parse_attack(spec)
    oracle = counter(lambda points, rows: mlp(points), 6)
    result = choice.run(oracle, images, torch.zeros(6, dtype=torch.int64), epsilon=0.0)
    assert torch.equal(result, images)
    assert result.data_ptr() != images.data_ptr()
    assert oracle.sizes == []


@each_attack
def test_an_empty_batch_is_a_normal_case(spec, mlp, images):
    choice = parse_attack(spec)
    result = choice.run(mlp, images[:0], torch.zeros(0, dtype=torch.int64), epsilon=0.1)
    assert result.shape == (0, 3, 2, 2)
    assert result.dtype == torch.float64


@each_attack
def test_model_inputs_and_modes_are_left_alone(spec, mlp, images):
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)
    mlp.train()
    mlp[1].eval()
    copy = images.clone()
    result = choice.run(mlp, images, labels, epsilon=radius(choice))
    assert all(parameter.grad is None for parameter in mlp.parameters())
    assert [module.training for module in mlp] == [True, False, True, True]
    assert torch.equal(images, copy)
    assert not images.requires_grad
    assert not result.requires_grad


@each_attack
def test_works_inside_no_grad_and_on_inputs_that_require_gradients(spec, mlp, images):
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)
    plain = choice.run(mlp, images, labels, epsilon=radius(choice))
    with torch.no_grad():
        assert torch.equal(choice.run(mlp, images, labels, epsilon=radius(choice)), plain)
    leaf = images.clone().requires_grad_()
    assert torch.equal(choice.run(mlp, leaf, labels, epsilon=radius(choice)), plain)
    assert leaf.grad is None


@pytest.mark.parametrize(
    "spec",
    [
        "fgsm:targeted=true",
        "pgd:targeted=true",
        "pgd:targeted=true,norm=l2,loss=dlr",
        "spsa:targeted=true,samples=16,steps=40",
    ],
)
def test_targeted_reaches_the_target_and_not_just_any_class(spec, mlp, images):
    choice = parse_attack(spec)
    clean = mlp(images)
    labels = clean.argmax(1)
    targets = clean.topk(3).indices[:, 2]
    epsilon = 0.3 if choice.norm == "linf" else 0.9
    points = choice.run(mlp, images, targets, epsilon=epsilon)
    with torch.no_grad():
        before = clean.softmax(1).gather(1, targets[:, None])
        after = mlp(points).softmax(1).gather(1, targets[:, None])
        reached = mlp(points).argmax(1) == targets
    assert (after > before).all()
    if choice.name != "fgsm":
        assert reached.sum() >= 4
        already = choice.run(mlp, images, labels, epsilon=epsilon)
        assert (mlp(already).argmax(1) == labels).all()


@pytest.mark.parametrize("spec", SPECS[2:])
def test_broken_logits_of_one_sample_leave_the_others_alone(spec, mlp, images):
    choice = parse_attack(spec)
    labels = mlp(images).argmax(1)

    class Broken:
        def logits(self, points, rows):
            return mlp(points).masked_fill((rows == 2).unsqueeze(1), float("nan"))

    result = choice.run(Broken(), images, labels, epsilon=radius(choice))
    expected = choice.run(mlp, images, labels, epsilon=radius(choice))
    others = [0, 1, 3, 4, 5]
    torch.testing.assert_close(result[others], expected[others], atol=1e-10, rtol=0)
    assert torch.isfinite(result).all()
    assert (result[2] - images[2]).norm() <= 0.2


def test_an_infinite_loss_makes_no_best_iterate(two_logits):
    model = two_logits(lambda points: points.sum(1).where(points[:, 0] < 0.52, float("inf")) - 9)
    pixels = torch.full((1, 2), 0.5)
    choice = parse_attack("pgd:steps=5,random_start=false,loss=margin")
    result = choice.run(model, pixels, torch.tensor([0]), epsilon=0.1)
    assert torch.equal(result, pixels)


def test_gradients_do_not_shrink_with_the_batch(mlp, images):
    leaf = images.clone().requires_grad_()
    one = images[:1].clone().requires_grad_()
    whole = input_gradient(mlp(leaf)[:, 0], leaf)
    torch.testing.assert_close(whole[:1], input_gradient(mlp(one)[:, 0], one))


@pytest.mark.parametrize("spec", ["fgsm", "fgsm:norm=l2", "pgd:random_start=false"])
def test_a_nan_gradient_gives_no_step(spec, two_logits):
    def model(pixels):
        return two_logits(lambda each: (each - each.detach()).sqrt().mul(0).sum(1) - 1)(pixels)

    choice = parse_attack(spec)
    pixels = torch.full((2, 3), 0.5)
    result = choice.run(model, pixels, torch.tensor([0, 0]), epsilon=0.1)
    assert torch.equal(result, pixels)


def half_precision_model(dtype):
    weights = torch.linspace(-1, 1, 24).view(4, 6).to(dtype)
    return lambda points: points.flatten(1) @ weights.T


@settings(max_examples=120, deadline=None)
@given(
    spec=st.sampled_from(SPECS),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    count=st.integers(1, 3),
)
def test_results_stay_in_ball_and_box(spec, share, seed, dtype, count):
    choice = parse_attack(spec)
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(count, 1, 2, 3, generator=generator).to(dtype)
    pixels[0, 0, 0, :2] = torch.tensor([0.0, 1.0])
    labels = torch.randint(4, (count,), generator=generator)
    epsilon = share if choice.norm == "linf" else share * 6**0.5
    result = choice.run(half_precision_model(dtype), pixels, labels, epsilon=epsilon, seed=seed)
    assert result.shape == pixels.shape
    assert result.dtype == dtype
    assert result.min() >= 0
    assert result.max() <= 1
    offsets = (result.double() - pixels.double()).flatten(1)
    order = float("inf") if choice.norm == "linf" else 2
    assert torch.linalg.vector_norm(offsets, ord=order, dim=1).max() <= epsilon + 1e-6


@each_attack
def test_half_precision_makes_progress_on_steps_finer_than_its_rounding(spec):
    model = half_precision_model(torch.bfloat16)
    pixels = torch.full((2, 1, 2, 3), 0.6, dtype=torch.bfloat16)
    choice = parse_attack(spec)
    result = choice.run(model, pixels, torch.tensor([3, 3]), epsilon=0.05)
    assert (result != pixels).any()


def test_pgd_accumulates_steps_that_bfloat16_would_round_away():
    weights = torch.tensor([[1.0, 1.0], [0.0, 0.0]], dtype=torch.bfloat16)
    pixels = torch.full((1, 2), 0.75, dtype=torch.bfloat16)
    choice = parse_attack("pgd:steps=100,step_size=0.0005,random_start=false")
    result = choice.run(lambda points: points @ weights.T, pixels, torch.tensor([0]), epsilon=0.05)
    torch.testing.assert_close(result.float(), torch.full((1, 2), 0.70), atol=0.004, rtol=0)


def test_a_tiny_overshoot_of_the_range_is_clamped(mlp, images):
    shifted = images.clone()
    shifted[0, 0, 0] = torch.tensor([-3e-8, 1 + 3e-8])
    for spec in SPECS:
        choice = parse_attack(spec)
        for epsilon in (0.0, 0.05):
            labels = torch.zeros(6, dtype=torch.int64)
            result = choice.run(mlp, shifted, labels, epsilon=epsilon)
            assert result.min() >= 0
            assert result.max() <= 1

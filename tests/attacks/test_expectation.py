"""Attacks on models that draw at random: the expectation over draws (Athalye et al. 2018)."""

import pytest
import torch

from robustbench_elliptical.attacks import ATTACKS, fgsm, parse_attack, pgd
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.oracle import DrawingOracle

SLOPES = torch.tensor(
    [[1.0, 1.0, 1.0], [-5.0, 1.0, 2.0], [1.0, -3.0, 2.0], [1.0, 1.0, -9.0]], dtype=torch.float64
)
"""Of each draw: the gap between the logits of classes 1 and 0 is slope . (x - 0.5) - 0.02."""


class Drawing:
    """Answers by `SLOPES`, the first for `logits`; remembers which draws were asked for."""

    def __init__(self):
        self.asked = []

    def logits(self, images, rows):
        return self.logits_of_draw(images, rows, 0)

    def logits_of_draw(self, images, rows, draw):
        self.asked.append(draw)
        gap = (images - 0.5) @ SLOPES[draw] - 0.02
        return torch.stack([torch.zeros_like(gap), gap], dim=1)


PIXELS = torch.full((2, 3), 0.5, dtype=torch.float64)
LABELS = torch.zeros(2, dtype=torch.int64)


def test_one_draw_is_the_judged_one():
    oracle = Drawing()
    assert isinstance(oracle, DrawingOracle)
    moved = fgsm(oracle, PIXELS, LABELS, epsilon=0.01) - PIXELS
    torch.testing.assert_close(moved, 0.01 * SLOPES[0].sign().expand(2, 3))
    assert oracle.asked == [0]


@pytest.mark.parametrize("draws", [2, 3])
def test_the_step_follows_the_mean_gradient_of_other_draws(draws):
    oracle = Drawing()
    moved = fgsm(oracle, PIXELS, LABELS, epsilon=0.01, loss="margin", draws=draws) - PIXELS
    expected = SLOPES[1 : draws + 1].mean(dim=0).sign()
    torch.testing.assert_close(moved, 0.01 * expected.expand(2, 3))
    assert oracle.asked == list(range(1, draws + 1))


def test_cross_entropy_weighs_the_draws_by_how_sure_they_are():
    """The gradient of the mean loss, not that of the loss of mean logits: by autograd by hand."""
    point = PIXELS[:1].clone().requires_grad_()
    gaps = (point - 0.5) @ SLOPES[1:3].T - 0.02
    torch.nn.functional.softplus(gaps).mean().backward()
    length = point.grad.norm()
    moved = fgsm(Drawing(), PIXELS[:1], LABELS[:1], epsilon=0.01, norm="l2", draws=2) - PIXELS[:1]
    torch.testing.assert_close(moved, 0.01 * point.grad / length)


def test_a_success_fools_every_draw():
    """The best point for two draws fools both; with three no point of the ball does."""
    pair = pgd(Drawing(), PIXELS, LABELS, epsilon=0.1, random_start=False, steps=5, draws=2)
    assert ((pair - 0.5) @ SLOPES[1:3].T > 0.02).all()
    oracle = Drawing()
    pgd(oracle, PIXELS, LABELS, epsilon=0.006, random_start=False, steps=5, draws=3)
    assert oracle.asked == [1, 2, 3] * 6


def test_a_plain_function_is_asked_again():
    """It may draw from torch's own generator."""
    asked = []

    def model(images):
        asked.append(len(asked))
        gap = images @ SLOPES[len(asked) % 4] - 9
        return torch.stack([torch.zeros_like(gap), gap], dim=1)

    moved = fgsm(model, PIXELS, LABELS, epsilon=0.01, loss="margin", draws=2) - PIXELS
    torch.testing.assert_close(moved, 0.01 * SLOPES[1:3].mean(dim=0).sign().expand(2, 3))
    assert asked == [0, 1]


def test_probes_of_spsa_are_averaged_too():
    attack = parse_attack("spsa:steps=1,samples=2,draws=3")
    oracle = Drawing()
    attack.run(oracle, PIXELS, LABELS, epsilon=0.001)
    assert oracle.asked == [1, 2, 3] * (len(oracle.asked) // 3)
    assert set(oracle.asked) == {1, 2, 3}


def test_every_attack_that_asks_the_model_can_average():
    for name in ATTACKS:
        entry = ATTACKS[name]
        assert ("draws" in entry.settings.model_fields) == (entry.knowledge != "none"), name
    with pytest.raises(UsageError, match=r"attack pgd: draws: .*greater than or equal to 1"):
        parse_attack("pgd:draws=0")


def test_a_choice_without_its_draws():
    assert parse_attack("pgd:draws=4").label == "pgd(draws=4)"
    assert parse_attack("pgd:draws=4").knowing_the_draw() == parse_attack("pgd")
    noise = parse_attack("noise")
    assert noise.knowing_the_draw() is noise

"""The same numbers as torchattacks where both compute the same thing."""

import warnings

import pytest
import torch

from robustbench_elliptical.attacks import fgsm, pgd


@pytest.fixture(scope="module")
def torchattacks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torchattacks", exc_type=ImportError)


def accuracy(model, pictures, labels):
    with torch.no_grad():
        return (model(pictures).argmax(1) == labels).float().mean().item()


@pytest.mark.parametrize("epsilon", [0.02, 0.05])
def test_fgsm_gives_the_same_images(torchattacks, trained, epsilon):
    model, pictures, labels = trained
    theirs = torchattacks.FGSM(model, eps=epsilon)(pictures, labels)
    ours = fgsm(model, pictures, labels, epsilon=epsilon)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert 0 < accuracy(model, ours, labels) < 1


def test_pgd_without_a_random_start_breaks_the_same_images_and_no_fewer(torchattacks, trained):
    model, pictures, labels = trained
    attack = torchattacks.PGD(model, eps=0.04, alpha=0.008, steps=20, random_start=False)
    theirs = attack(pictures, labels)
    ours = pgd(model, pictures, labels, epsilon=0.04, step_size=0.008, steps=20, random_start=False)
    with torch.no_grad():
        broken_by_theirs = model(theirs).argmax(1) != labels
        broken_by_ours = model(ours).argmax(1) != labels
    assert 10 < broken_by_theirs.sum() < len(labels) - 10
    # Theirs is the last iterate, ours the best one.
    assert broken_by_ours[broken_by_theirs].all()
    assert broken_by_ours.sum() - broken_by_theirs.sum() <= 2


def test_pgd_from_random_starts_gives_the_same_robust_accuracy(torchattacks, trained):
    model, pictures, labels = trained
    attack = torchattacks.PGD(model, eps=0.04, alpha=0.008, steps=20)
    theirs, ours = [], []
    for seed in range(4):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            theirs.append(accuracy(model, attack(pictures, labels), labels))
        points = pgd(model, pictures, labels, epsilon=0.04, step_size=0.008, steps=20, seed=seed)
        ours.append(accuracy(model, points, labels))
    assert 0.1 < sum(theirs) / 4 < 0.9
    # Starts differ, so single runs differ by an image or two.
    assert abs(sum(ours) - sum(theirs)) / 4 <= 2 / len(labels)

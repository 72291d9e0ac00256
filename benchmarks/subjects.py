"""The models and images that are measured; weights are frozen, as during an evaluation."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.rows import Size
from robustbench_elliptical.attacks import pgd
from robustbench_elliptical.data import ImageBatch, load_data, select
from robustbench_elliptical.models import (
    ImageClassifier,
    build_network,
    load_card,
    load_model,
    shipped_cards,
)

__all__ = ["Subject", "accuracy", "correct_images", "deit_tiny", "large_subject", "small_subject"]

SEED = 0


class Subject(NamedTuple):
    """A model, and images on which no attack on it ends early."""

    name: str
    model: nn.Module
    images: Tensor
    labels: Tensor
    epsilon: float = 8 / 255


def shipped_model(name: str) -> ImageClassifier:
    """Load a shipped model, frozen."""
    return load_model(name).requires_grad_(requires_grad=False)


def correct_images(model: ImageClassifier, count: int) -> ImageBatch:
    """Return embedded Fashion-MNIST images that the model classifies right."""
    data = load_data("fashion-mnist")
    chosen = select(data, 2 * count + 16, SEED)
    batch = next(data.batches(chosen, len(chosen)))
    with torch.no_grad():
        right = model(batch.images).argmax(dim=1) == batch.labels
    return _kept(batch, right, count)


def small_subject(size: Size) -> Subject:
    """Return the shipped elliptical model with images that resist PGD-20 at 8/255."""
    name = "deit-micro-elliptical"
    model = shipped_model(name)
    batch = correct_images(model, 12 * size.images)
    points = pgd(model, batch.images, batch.labels, epsilon=8 / 255, seed=SEED)
    with torch.no_grad():
        resists = model(points).argmax(dim=1) == batch.labels
    chosen = _kept(batch, resists, size.images)
    return Subject(name, model, chosen.images, chosen.labels)


def large_subject(size: Size) -> Subject:
    """Return a DeiT-tiny with random weights that no small perturbation fools.

    Its last bias favours class 0 by more than such a perturbation changes a logit.
    """
    model = deit_tiny("deit-tiny-softmax")
    model.head.bias[0] += 10
    torch.manual_seed(SEED)
    images = torch.rand(size.images, 3, 224, 224)
    labels = torch.zeros(size.images, dtype=torch.int64)
    return Subject("deit_tiny_patch16_224", model, images, labels)


def deit_tiny(card: str) -> nn.Module:
    """Build the network of a shipped card, frozen, with the same random weights for each card."""
    description = load_card(shipped_cards()[card])
    torch.manual_seed(SEED)
    network = build_network(description.architecture, description.attention)
    return network.eval().requires_grad_(requires_grad=False)


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> str:
    """Return how many images are classified right, as text."""
    right = int((model(images).argmax(dim=1) == labels).sum())
    return f"{right}/{len(labels)}"


def _kept(batch: ImageBatch, wanted: Tensor, count: int) -> ImageBatch:
    rows = wanted.nonzero().squeeze(1)[:count]
    if len(rows) < count:
        raise AssertionError(f"wanted {count} images, found {len(rows)}")
    ids = tuple(batch.sample_ids[row] for row in rows.tolist())
    return ImageBatch(batch.images[rows], batch.labels[rows], ids)

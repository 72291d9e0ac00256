"""Toy models whose answers are known, and an oracle that counts."""

import pytest
import torch
from torch import nn


class Counter:
    """An oracle around a function of (images, rows); counts passes and can record queries."""

    def __init__(self, function, batch):
        self.function = function
        self.forwards = torch.zeros(batch, dtype=torch.int64)
        self.backwards = torch.zeros(batch, dtype=torch.int64)
        self.sizes = []
        self.queries = [[] for _ in range(batch)]

    def logits(self, images, rows):
        self.sizes.append(len(images))
        self.forwards += rows.bincount(minlength=len(self.forwards))
        for image, row in zip(images.detach(), rows.tolist(), strict=True):
            self.queries[row].append(image.clone())
        logits = self.function(images, rows)
        if logits.requires_grad:
            logits.register_hook(lambda _: self._count_backward(rows))
        return logits

    def _count_backward(self, rows):
        self.backwards += rows.bincount(minlength=len(self.backwards))


def margin_model(function):
    """Two logits whose difference is `function(images)`: above 0 fools label 0."""

    def model(images, rows=None):
        gap = function(images) if rows is None else function(images, rows)
        return torch.stack([torch.zeros_like(gap), gap], dim=1)

    return model


@pytest.fixture
def counter():
    return Counter


@pytest.fixture
def two_logits():
    return margin_model


@pytest.fixture
def mlp():
    """A seeded float64 classifier of 3 x 2 x 2 images, 5 classes."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5)).double()


@pytest.fixture
def images():
    return torch.rand(6, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def blobs(count, seed):
    """Four classes of 8 x 8 images: a faint bright quadrant on noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=generator)
    pictures = 0.35 + 0.3 * torch.rand(count, 1, 8, 8, generator=generator)
    for row, label in enumerate(labels.tolist()):
        top, left = 4 * (label // 2), 4 * (label % 2)
        pictures[row, 0, top : top + 4, left : left + 4] += 0.12
    return pictures.clamp(0, 1), labels


@pytest.fixture(scope="session")
def trained():
    """A small trained network with test images that it gets right, and their labels."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 4),
        )
    pictures, labels = blobs(512, 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimiser.step()
    model.zero_grad()
    model.eval()
    pictures, labels = blobs(96, 2)
    with torch.no_grad():
        right = model(pictures).argmax(1) == labels
    assert right.float().mean() > 0.9
    return model, pictures[right], labels[right]

import numpy as np
import pytest
import torch
from torch import nn

from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.models import ImageClassifier

WEIGHT = torch.tensor([1.0, -2.0, 0.5, 0.5])
"""Class 1 wins where WEIGHT . (x - 0.5) > 0; an l-infinity step of size e moves that by 4 e."""


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        with torch.no_grad():
            self.linear.weight.copy_(torch.stack([-WEIGHT / 2, WEIGHT / 2]))
            self.linear.bias.copy_(torch.tensor([WEIGHT.sum() / 4, -WEIGHT.sum() / 4]))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images):
        return self.linear(self.dropout(images.flatten(1)))


@pytest.fixture
def model():
    return ImageClassifier(
        Linear(), input_shape=(1, 2, 2), num_classes=2, mean=[0.0], std=[1.0], name="linear"
    )


@pytest.fixture
def batch():
    """Sixteen interior images; the first two carry the wrong label."""
    generator = np.random.default_rng(0)
    images = torch.from_numpy(generator.uniform(0.3, 0.7, (16, 1, 2, 2)).astype(np.float32))
    labels = (((images.flatten(1) - 0.5) @ WEIGHT) > 0).long()
    labels[:2] = 1 - labels[:2]
    return ImageBatch(images, labels, tuple(f"toy/{index}" for index in range(16)))


@pytest.fixture
def margins(batch):
    """Distance of each image to the boundary in l-infinity."""
    return (((batch.images.flatten(1) - 0.5) @ WEIGHT).abs() / WEIGHT.abs().sum()).numpy()

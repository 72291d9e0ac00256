"""Training batches: shuffled, augmented, a function of (seed, epoch) alone."""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from robustbench_elliptical.core.randomness import keyed_generator
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.training.recipe import Augmentation

__all__ = ["augment", "epoch_batches", "load_all"]

_BLOCK = 4096


def load_all(data: ImageData) -> tuple[Tensor, Tensor]:
    """Return every image as uint8 (samples, channels, h, w) and every label, for shuffling."""
    images, labels = [], []
    for batch in data.batches(range(len(data)), _BLOCK):
        images.append((batch.images * 255).round().to(torch.uint8))
        labels.append(batch.labels)
    return torch.cat(images), torch.cat(labels)


def epoch_batches(
    images: Tensor, labels: Tensor, batch_size: int, augmentation: Augmentation, *words: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield float images in [0, 1] and labels for one epoch; a smaller last batch is dropped.

    Parameters
    ----------
    images, labels
        uint8 (samples, channels, h, w) and int64 (samples,).
    batch_size, augmentation
        From the recipe.
    words
        What the shuffle and the augmentation are keyed on: the seed, then the epoch.
    """
    generator = keyed_generator(words[0], "training/epoch", *words[1:])
    order = torch.from_numpy(generator.permutation(len(labels)))
    for start in range(0, len(labels) - batch_size + 1, batch_size):
        chosen = order[start : start + batch_size]
        yield augment(images[chosen].float().div_(255), augmentation, generator), labels[chosen]


def augment(images: Tensor, augmentation: Augmentation, generator: np.random.Generator) -> Tensor:
    """Flip and shift each image at random; shape and range are kept."""
    batch, _, height, width = images.shape
    padding = augmentation.crop_padding
    columns = torch.arange(width).expand(batch, width)
    rows = torch.arange(height).expand(batch, height)
    if augmentation.flip:
        flipped = torch.from_numpy(generator.random(batch) < 0.5)
        columns = torch.where(flipped[:, None], columns.flip(1), columns)
    if padding:
        shifts = torch.from_numpy(generator.integers(0, 2 * padding + 1, size=(2, batch, 1)))
        rows, columns = rows + shifts[0], columns + shifts[1]
        images = functional.pad(images, (padding,) * 4)
    samples = torch.arange(batch)[:, None, None]
    return images.permute(0, 2, 3, 1)[samples, rows[:, :, None], columns[:, None, :]].permute(
        0, 3, 1, 2
    )

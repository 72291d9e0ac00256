"""What a data set of labelled images is, for the rest of the toolkit.

Labels and ids are known up front; pixels are read batch by batch, in increasing order of index, so
that a set of any size streams.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError

__all__ = ["ImageBatch", "ImageData", "ImageShape"]


class ImageShape(NamedTuple):
    """The shape of every image of a set."""

    channels: int
    height: int
    width: int


class ImageBatch(NamedTuple):
    """Some samples of a data set."""

    images: Tensor
    """Shape (batch, channels, height, width), float32, pixels in [0, 1]."""
    labels: Tensor
    """Shape (batch,), int64."""
    sample_ids: tuple[str, ...]
    """One stable id a sample: the same for the same sample in every run and selection."""


class ImageData(ABC):
    """A labelled image data set.

    Parameters
    ----------
    name
        How the user named it ("fashion-mnist", "npz:FILE").
    labels
        Shape (samples,), int64.
    sample_ids
        One stable id a sample.
    num_classes
        Number of classes that the labels index; labels outside it are refused.
    image_shape
        (channels, height, width) of every image.
    class_names
        Names by label, or none.

    Raises
    ------
    UsageError
        If the set is empty, a label is out of range or two samples share an id.
    """

    def __init__(
        self,
        name: str,
        labels: npt.NDArray[np.int64],
        sample_ids: Sequence[str],
        num_classes: int,
        *,
        image_shape: tuple[int, int, int],
        class_names: Sequence[str] | None = None,
    ) -> None:
        if len(labels) == 0:
            raise UsageError(f"data {name} has no samples; point it at a set that has some")
        wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
        if len(wrong):
            raise UsageError(
                f"data {name}: labels must lie in 0..{num_classes - 1}, "
                f"got {labels[wrong[0]]} for sample {sample_ids[int(wrong[0])]}; a class that is "
                "missing from the number of classes is the usual cause"
            )
        self.name = name
        self.labels = labels
        self.sample_ids = sample_ids
        self.num_classes = num_classes
        self.image_shape = ImageShape(*image_shape)
        self.class_names = class_names
        self._check_ids()

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def _read(self, indices: Sequence[int]) -> npt.NDArray[np.float32] | npt.NDArray[np.uint8]:
        """Return the pixels of increasing `indices`, shape (len(indices), channels, h, w)."""

    def batches(self, indices: Sequence[int], batch_size: int) -> Iterator[ImageBatch]:
        """Yield the samples `indices`, `batch_size` at a time.

        Parameters
        ----------
        indices
            Strictly increasing, each in 0..len(self) - 1.
        batch_size
            At least 1; the last batch may be smaller.

        Raises
        ------
        UsageError
            If a file can't be read or is broken, an image holds a value that is not finite or
            lies outside [0, 1] pixels, or `batch_size` is below 1.
        IndexError
            If `indices` are out of range or don't increase.
        """
        if batch_size < 1:
            raise UsageError(f"batch size must be at least 1, got {batch_size}")
        self._check_indices(indices)
        return self._batches(indices, batch_size)

    def _batches(self, indices: Sequence[int], batch_size: int) -> Iterator[ImageBatch]:
        for start in range(0, len(indices), batch_size):
            chosen = list(indices[start : start + batch_size])
            ids = tuple(self.sample_ids[index] for index in chosen)
            pixels = self._read(chosen)
            if pixels.dtype == np.uint8:
                images = torch.from_numpy(pixels).float().div_(255)
            else:
                images = torch.from_numpy(pixels.astype(np.float32, copy=False))
                self._check_range(images, ids)
            yield ImageBatch(images, torch.from_numpy(self.labels[chosen]), ids)

    def _check_ids(self) -> None:
        if len(self.sample_ids) != len(self):
            raise UsageError(
                f"data {self.name}: every sample needs an id, got {len(self.sample_ids)} ids for "
                f"{len(self)} samples"
            )
        seen: set[str] = set()
        for sample_id in self.sample_ids:
            if not sample_id or sample_id in seen:
                raise UsageError(
                    f"data {self.name}: sample ids must be unique and not empty, got {sample_id!r}"
                    f"{' twice' if sample_id else ''}; results are keyed on them"
                )
            seen.add(sample_id)

    def _check_indices(self, indices: Sequence[int]) -> None:
        order = np.asarray(indices, dtype=np.int64)
        if len(order) == 0:
            return
        if order[0] < 0 or order[-1] >= len(self) or bool((np.diff(order) <= 0).any()):
            raise IndexError(f"indices must increase strictly within 0..{len(self) - 1}")

    def _check_range(self, images: Tensor, ids: Sequence[str]) -> None:
        inside = ((images >= 0) & (images <= 1)).flatten(1).all(dim=1)
        if bool(inside.all()):
            return
        row = int((~inside).nonzero()[0])
        values = images[row]
        raise UsageError(
            f"data {self.name}: pixels must be finite and lie in [0, 1], got values from "
            f"{values.min():g} to {values.max():g} in sample {ids[row]}; divide 0-255 data by 255 "
            "and don't normalise: the model does"
        )

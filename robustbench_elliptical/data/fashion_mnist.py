"""Fashion-MNIST (Xiao et al. 2017, MIT licence): 28x28 grey images of 10 kinds of clothing.

`fashion-mnist` is 2,000 test images that ship with the package; `fashion-mnist:DIR` reads the four
idx files of the full set. Both give a test image the same id.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.data.idx import IdxReader, read_idx

__all__ = ["CLASS_NAMES", "FashionMnist"]

CLASS_NAMES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_PREFIX = {"test": "t10k", "train": "train"}


class FashionMnist(ImageData):
    """The full set from a folder of idx files, plain or gzip.

    Parameters
    ----------
    folder
        Holds ``t10k-images-idx3-ubyte`` and its siblings, with or without ``.gz``.
    split
        ``"test"`` (10,000 images) or ``"train"`` (60,000).

    Raises
    ------
    UsageError
        If a file is missing or broken, or images and labels differ in number.
    """

    def __init__(self, folder: Path, split: Literal["test", "train"] = "test") -> None:
        prefix = _PREFIX[split]
        self._images = IdxReader(_find(folder, f"{prefix}-images-idx3-ubyte"))
        labels = read_idx(_find(folder, f"{prefix}-labels-idx1-ubyte")).astype(np.int64)
        if self._images.shape[0] != len(labels):
            raise UsageError(
                f"data fashion-mnist:{folder}: {self._images.shape[0]} images but "
                f"{len(labels)} labels"
            )
        ids = [f"fashion-mnist/{split}/{index:05d}" for index in range(len(labels))]
        super().__init__(f"fashion-mnist:{folder}", labels, ids, len(CLASS_NAMES), CLASS_NAMES)

    def _read(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        return self._images.rows(indices)[:, None]


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise UsageError(f"data fashion-mnist:{folder}: {name}[.gz] is missing from that folder")

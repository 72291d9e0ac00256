"""Fashion-MNIST (Xiao et al. 2017, MIT licence): 28x28 grey images of 10 kinds of clothing.

`fashion-mnist` is 2,000 test images that ship with the package; `fashion-mnist:DIR` reads the four
idx files of the full set. Both give a test image the same id.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.data.idx import IdxReader, read_idx
from robustbench_elliptical.data.npz import NpzData
from robustbench_elliptical.data.sources import DATA, DataRequest, DataSource
from robustbench_elliptical.data.streams import existing, reading

__all__ = ["CLASS_NAMES", "EmbeddedFashionMnist", "FashionMnist"]

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
_FULL_SET = (
    "give the folder of the four idx files as fashion-mnist:DIR "
    "(Debian's package dataset-fashion-mnist has them in /usr/share/datasets/fashion-mnist)"
)


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
        name = f"fashion-mnist:{folder}"
        existing(folder, "folder", _FULL_SET)
        prefix = _PREFIX[split]
        labels = read_idx(_find(folder, f"{prefix}-labels-idx1-ubyte")).astype(np.int64)
        self._images = IdxReader(_find(folder, f"{prefix}-images-idx3-ubyte"))
        if len(self._images.shape) != 3 or labels.shape != self._images.shape[:1]:
            raise UsageError(
                f"data {name}: images must have the shape (n, h, w) and labels (n,), got "
                f"{self._images.shape} and {labels.shape}"
            )
        _, height, width = self._images.shape
        ids = [f"fashion-mnist/{split}/{index:05d}" for index in range(len(labels))]
        super().__init__(
            name,
            labels,
            ids,
            len(CLASS_NAMES),
            image_shape=(1, height, width),
            class_names=CLASS_NAMES,
        )

    def _read(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        return self._images.rows(indices)[:, None]


class EmbeddedFashionMnist(NpzData):
    """The 2,000 test images that ship with the package, 200 a class, in the full set's order."""

    def __init__(self) -> None:
        folder = Path(str(files("robustbench_elliptical.data"))) / "embedded"
        super().__init__(folder / "fashion-mnist-test-2000.npz", name="fashion-mnist")


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        with reading(candidate):
            if candidate.is_file():
                return candidate
    raise UsageError(
        f"data fashion-mnist:{folder}: {name}[.gz] is missing from that folder; {_FULL_SET}"
    )


def _load(request: DataRequest) -> ImageData:
    if request.place is not None:
        return FashionMnist(request.place, request.split)
    if request.split != "test":
        raise UsageError(
            f"data fashion-mnist: the embedded set is part of the test split, got split "
            f"{request.split!r}; {_FULL_SET}"
        )
    return EmbeddedFashionMnist()


DATA.add("fashion-mnist", DataSource(("fashion-mnist", "fashion-mnist:DIR"), _load))

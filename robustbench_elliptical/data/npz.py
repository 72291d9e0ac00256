"""Any labelled images as one npz file, read row by row and never through pickle.

Arrays: `images` (uint8, or floats in [0, 1]; (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3
channels) and integer `labels` (n,). Optional: `num_classes`, `class_names`, `sample_ids`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.data.npz_member import NpzMember, member_names
from robustbench_elliptical.data.sources import DATA, DataRequest, DataSource
from robustbench_elliptical.data.streams import existing

__all__ = ["NpzData"]

_CHANNELS = (1, 3)


class NpzData(ImageData):
    """A data set from an npz file.

    Parameters
    ----------
    path
        The file, compressed or not.
    num_classes
        For a file that doesn't state it; else the largest label plus 1.
    name
        Replaces ``npz:FILE`` in messages and results.

    Raises
    ------
    UsageError
        If the file is missing or broken, or its arrays are not as the module describes.
    """

    def __init__(self, path: Path, num_classes: int | None = None, name: str | None = None) -> None:
        self._subject = f"data {name or f'npz:{path}'}"
        self._path = existing(path, "file", "give an npz file with the arrays images and labels")
        self._names = member_names(path)
        self._images = self._member("images")
        self._channels_last, image_shape = self._layout()
        count = self._images.shape[0]
        labels = self._labels(count)
        class_names = self._texts("class_names", None)
        sample_ids = self._texts("sample_ids", count) or [
            f"npz/{path.stem}/{index:06d}" for index in range(count)
        ]
        super().__init__(
            name or f"npz:{path}",
            labels,
            sample_ids,
            self._classes(labels, class_names, num_classes),
            image_shape=image_shape,
            class_names=class_names,
        )

    def _read(self, indices: Sequence[int]) -> npt.NDArray[np.float32] | npt.NDArray[np.uint8]:
        rows: npt.NDArray[Any] = self._images.rows(indices)
        if self._channels_last:
            rows = rows.transpose(0, 3, 1, 2)
        rows = rows.reshape(len(indices), *self.image_shape)
        if rows.dtype == np.uint8:
            return np.ascontiguousarray(rows, dtype=np.uint8)
        with np.errstate(over="ignore"):  # A float64 beyond float32 becomes inf, refused later.
            return np.ascontiguousarray(rows, dtype=np.float32)

    def _member(self, array: str) -> NpzMember:
        if array not in self._names:
            raise UsageError(
                f"{self._subject}: the arrays images and labels are required, got "
                f"{', '.join(sorted(self._names)) or 'none'}; save with np.savez(FILE, images=..., "
                "labels=...)"
            )
        return NpzMember(self._path, array)

    def _layout(self) -> tuple[bool, tuple[int, int, int]]:
        """Return whether channels come last, and (channels, height, width)."""
        dtype, shape = self._images.dtype, self._images.shape
        if dtype != np.uint8 and not (dtype.kind == "f" and dtype.itemsize <= 8):
            raise UsageError(
                f"{self._subject}: images must be uint8 (0-255) or floats in [0, 1], got {dtype}; "
                "convert them first"
            )
        if 0 in shape[1:]:
            raise UsageError(f"{self._subject}: images must have pixels, got the shape {shape}")
        if len(shape) == 3:
            return False, (1, shape[1], shape[2])
        first = len(shape) == 4 and shape[1] in _CHANNELS
        last = len(shape) == 4 and shape[3] in _CHANNELS
        if first and last:
            raise UsageError(
                f"{self._subject}: images of shape {shape} may be (n, c, h, w) or (n, h, w, c); "
                "store (n, c, h, w) with a width other than 1 and 3"
            )
        if first:
            return False, (shape[1], shape[2], shape[3])
        if last:
            return True, (shape[3], shape[1], shape[2])
        raise UsageError(
            f"{self._subject}: images must have the shape (n, h, w), (n, c, h, w) or (n, h, w, c) "
            f"with 1 or 3 channels, got {shape}"
        )

    def _labels(self, count: int) -> npt.NDArray[np.int64]:
        member = self._member("labels")
        if member.dtype.kind not in "iu" or member.shape != (count,):
            raise UsageError(
                f"{self._subject}: labels must be integers of shape ({count},), one for each "
                f"image, got {member.dtype} of shape {member.shape}"
            )
        values = member.read()
        if count and int(values.max()) > np.iinfo(np.int64).max:
            raise UsageError(f"{self._subject}: labels must fit int64, got {values.max()}")
        return values.astype(np.int64)

    def _texts(self, array: str, count: int | None) -> list[str] | None:
        if array not in self._names:
            return None
        member = self._member(array)
        if member.dtype.kind != "U" or len(member.shape) != 1 or count not in (None, *member.shape):
            length = "n" if count is None else count
            raise UsageError(
                f"{self._subject}: {array} must be an array of strings (dtype U) of shape "
                f"({length},), got {member.dtype} of shape {member.shape}"
            )
        return [str(text) for text in member.read()]

    def _classes(
        self,
        labels: npt.NDArray[np.int64],
        class_names: Sequence[str] | None,
        default: int | None,
    ) -> int:
        stated = self._stated_classes()
        if class_names is not None and stated not in (None, len(class_names)):
            raise UsageError(
                f"{self._subject}: num_classes is {stated} but class_names has "
                f"{len(class_names)} entries; they must agree"
            )
        if stated is not None:
            return stated
        if class_names is not None:
            return len(class_names)
        if default is not None:
            return default
        return int(labels.max()) + 1 if len(labels) else 1

    def _stated_classes(self) -> int | None:
        if "num_classes" not in self._names:
            return None
        member = self._member("num_classes")
        if member.dtype.kind not in "iu" or member.shape not in ((), (1,)):
            raise UsageError(
                f"{self._subject}: num_classes must be one integer, got {member.dtype} of shape "
                f"{member.shape}"
            )
        stated = int(member.read().reshape(-1)[0])
        if stated < 1:
            raise UsageError(f"{self._subject}: num_classes must be at least 1, got {stated}")
        return stated


def _load(request: DataRequest) -> ImageData:
    assert request.place is not None
    return NpzData(request.place, request.num_classes)


DATA.add("npz", DataSource(("npz:FILE",), _load))

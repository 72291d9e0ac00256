"""Read one array of an npz file row by row, through the public parts of numpy's format."""

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from robustbench_elliptical.data.streams import MAX_ROW_BYTES, RowStream, reading, take

__all__ = ["NpzMember", "member_names"]


def member_names(path: Path) -> frozenset[str]:
    """Return the names of the arrays in an npz file.

    Raises
    ------
    UsageError
        If it can't be read or is no npz file.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        return frozenset(
            name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")
        )


class NpzMember:
    """An array in an npz file, read in increasing order of its first axis.

    Raises
    ------
    UsageError
        If the array is broken, is in Fortran order or would need pickle.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        with reading(path):
            stream, self.shape, self.dtype = self._open()
            stream.close()
            if math.prod(self.shape[1:]) * self.dtype.itemsize > MAX_ROW_BYTES:
                raise ValueError(f"array {name} states the shape {self.shape}")
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        self._rows = RowStream(
            path, self.shape[0] if self.shape else 1, row_bytes, lambda: self._open()[0]
        )

    def rows(self, indices: Sequence[int]) -> npt.NDArray[Any]:
        """Return the rows `indices` (strictly increasing), shape (len(indices), ...)."""
        raw = self._rows.read(indices)
        return raw.view(self.dtype).reshape(len(indices), *self.shape[1:])

    def read(self) -> npt.NDArray[Any]:
        """Return the whole array; for labels and other small ones."""
        with reading(self._path):
            stream = self._open()[0]
            with stream:
                data = take(stream, math.prod(self.shape) * self.dtype.itemsize)
                stream.read(1)  # The end of the member is where zipfile compares the checksum.
        return np.frombuffer(data, dtype=self.dtype).reshape(self.shape)

    def _open(self) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]:
        """Return the member at its first row, its shape and its dtype."""
        with zipfile.ZipFile(self._path) as archive:
            stated = archive.getinfo(f"{self._name}.npy").file_size
            stream = archive.open(f"{self._name}.npy")
        try:
            version = npy.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"array {self._name} has the npy version {version}")
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = header(stream)
            self._check(shape, fortran, dtype, stated - stream.tell())
        except BaseException:
            stream.close()
            raise
        return stream, shape, dtype

    def _check(
        self, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any], stated: int
    ) -> None:
        if dtype.hasobject or dtype.fields is not None:
            raise ValueError(
                f"array {self._name} has dtype {dtype}; plain numbers or strings are required"
            )
        if fortran and sum(side > 1 for side in shape) > 1:
            raise ValueError(
                f"array {self._name} is in Fortran order, which can't be read row by row; save "
                "np.ascontiguousarray of it"
            )
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != stated:
            raise ValueError(
                f"array {self._name} states the shape {shape} of {dtype} but has {stated} bytes"
            )

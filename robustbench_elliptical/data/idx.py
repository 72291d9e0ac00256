"""Read idx files (the MNIST format), plain or gzip, without holding the images in memory."""

import gzip
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.data.streams import MAX_ROW_BYTES, RowStream, reading, take

__all__ = ["IdxReader", "read_idx"]

_UNSIGNED_BYTE = 0x08
_GZIP_MAGIC = b"\x1f\x8b"


class IdxReader:
    """Rows of an idx file of unsigned bytes, read in increasing order.

    Going back to an earlier row reads the file again from its start.

    Raises
    ------
    UsageError
        If the file is missing, truncated, or not an idx file of unsigned bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            stream, self.shape = _open(path)
            """(rows, ...) as the header states it."""
            stream.close()
            row_bytes = math.prod(self.shape[1:])
            if not 0 < row_bytes <= MAX_ROW_BYTES:
                raise ValueError(f"its header states the shape {self.shape}")
        self._stream = RowStream(path, self.shape[0], row_bytes, lambda: _open(path)[0])

    def rows(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        """Return the rows `indices` (strictly increasing), shape (len(indices), ...)."""
        return self._stream.read(indices).reshape(len(indices), *self.shape[1:])


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return a whole idx file of unsigned bytes; for labels and other small files.

    Raises
    ------
    UsageError
        As `IdxReader`, and if the file goes on after its data.
    """
    with reading(path):
        stream, shape = _open(path)
        with stream:
            data = take(stream, math.prod(shape))
            if stream.read(1):
                raise ValueError("it goes on after the data that its header states")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _open(path: Path) -> tuple[IO[bytes], tuple[int, ...]]:
    """Return the file at its first row, and the shape that its header states."""
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == _GZIP_MAGIC
    opened = gzip.open(path) if is_gzip else path.open("rb")  # noqa: SIM115 - the caller closes it
    stream = cast("IO[bytes]", opened)
    try:
        header = take(stream, 4)
        if header[:2] != b"\0\0" or header[2] != _UNSIGNED_BYTE or header[3] == 0:
            raise ValueError("it is not an idx file of unsigned bytes")
        return stream, struct.unpack(f">{header[3]}I", take(stream, 4 * header[3]))
    except BaseException:
        stream.close()
        raise

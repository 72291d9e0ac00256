"""Read idx files (the MNIST format), plain or gzip, without holding the images in memory."""

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError

__all__ = ["IdxReader", "read_idx"]

_UNSIGNED_BYTE = 0x08


class IdxReader:
    """Rows of an idx file of unsigned bytes, read in increasing order.

    Going back to an earlier row opens the file again.

    Raises
    ------
    UsageError
        If the file is missing, truncated, or not an idx file of unsigned bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: BinaryIO | gzip.GzipFile | None = None
        self._position = 0
        self.shape = self._open()
        """(rows, ...) as the header states it."""

    def rows(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        """Return the rows `indices` (increasing), shape (len(indices), ...)."""
        if self._stream is None or (indices and indices[0] < self._position):
            self._open()
        size = int(np.prod(self.shape[1:], dtype=np.int64))
        out = np.empty((len(indices), size), dtype=np.uint8)
        for place, index in enumerate(indices):
            if index > self._position:
                self._take((index - self._position) * size)
            out[place] = np.frombuffer(self._take(size), dtype=np.uint8)
            self._position = index + 1
        return out.reshape(len(indices), *self.shape[1:])

    def _open(self) -> tuple[int, ...]:
        if self._stream is not None:
            self._stream.close()
        try:
            raw = self.path.open("rb")
        except OSError as error:
            raise UsageError(f"cannot read idx file {self.path}: {error.strerror}") from None
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        self._stream = gzip.GzipFile(fileobj=raw) if is_gzip else raw
        self._position = 0
        header = self._take(4)
        if header[:2] != b"\0\0" or header[2] != _UNSIGNED_BYTE or header[3] == 0:
            raise UsageError(f"{self.path} is not an idx file of unsigned bytes")
        return struct.unpack(f">{header[3]}I", self._take(4 * header[3]))

    def _take(self, count: int) -> bytes:
        assert self._stream is not None
        try:
            data = self._stream.read(count)
        except (OSError, EOFError) as error:
            raise UsageError(f"{self.path} is a broken idx file: {error}") from None
        if len(data) != count:
            raise UsageError(f"{self.path} is truncated: fewer bytes than its header states")
        return data


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return a whole idx file of unsigned bytes; for labels and other small files."""
    reader = IdxReader(path)
    return reader.rows(range(reader.shape[0]))

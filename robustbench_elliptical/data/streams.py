"""Read equal rows of a byte stream in increasing order, holding only the rows asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.files import existing, reading

__all__ = ["MAX_ROW_BYTES", "RowStream", "existing", "reading", "skip", "take"]

MAX_ROW_BYTES = 1 << 28
"""A header that states a larger image is taken for broken."""
_CHUNK = 1 << 18


def take(stream: IO[bytes], count: int) -> bytearray:
    """Return the next `count` bytes; memory grows with what is there, not with `count`.

    Raises
    ------
    EOFError
        If the stream ends before.
    """
    data = bytearray()
    while len(data) < count:
        chunk = stream.read(min(_CHUNK, count - len(data)))
        if not chunk:
            raise EOFError("it ends before the data that its header states")
        data += chunk
    return data


def skip(stream: IO[bytes], count: int) -> None:
    """Read past `count` bytes; raises `EOFError` if the stream ends before."""
    while count > 0:
        chunk = stream.read(min(_CHUNK, count))
        if not chunk:
            raise EOFError("it ends before the data that its header states")
        count -= len(chunk)


class RowStream:
    """Equal rows of bytes, read forwards.

    Going back to an earlier row starts again from the first. After the last row the stream must
    end, which is also when gzip and zip compare their checksum.

    Parameters
    ----------
    path
        The file, for messages.
    rows, row_bytes
        How many rows follow and how long each is.
    start
        Opens the stream at its first row.
    """

    def __init__(
        self, path: Path, rows: int, row_bytes: int, start: Callable[[], IO[bytes]]
    ) -> None:
        self._stream: IO[bytes] | None = None
        self._position = 0
        self._path = path
        self._rows = rows
        self._row_bytes = row_bytes
        self._start = start

    def read(self, indices: Sequence[int]) -> npt.NDArray[np.uint8]:
        """Return the rows at strictly increasing `indices`, shape (len(indices), row_bytes).

        Raises
        ------
        UsageError
            If the file is broken or can't be read.
        """
        out = np.empty((len(indices), self._row_bytes), dtype=np.uint8)
        try:
            with reading(self._path):
                for place, index in enumerate(indices):
                    out[place] = self._row(index)
        except UsageError:
            self.close()
            raise
        return out

    def close(self) -> None:
        """Close the file; a later `read` opens it again."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _row(self, index: int) -> npt.NDArray[np.uint8]:
        if self._stream is None or index < self._position:
            self.close()
            self._stream = self._start()
            self._position = 0
        skip(self._stream, (index - self._position) * self._row_bytes)
        row = np.frombuffer(take(self._stream, self._row_bytes), dtype=np.uint8)
        self._position = index + 1
        if self._position == self._rows and self._stream.read(1):
            raise ValueError("it goes on after the data that its header states")
        return row

    def __del__(self) -> None:
        self.close()

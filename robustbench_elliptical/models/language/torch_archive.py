"""The zip archive that `torch.save` writes: one pickle and one raw record for each storage."""

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language.inert_pickle import Name

__all__ = ["TorchArchive", "rebuild_tensor"]

_STORAGES = {
    "torch.DoubleStorage": torch.float64,
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}
_MOST_DIMENSIONS = 16


class TorchArchive:
    """The records of one archive; a context manager.

    Parameters
    ----------
    path
        The file.
    subject
        What it is, for messages ("model file model.pt").

    Raises
    ------
    UsageError
        If the file is missing, no such archive, or compressed, which torch's never is.
    """

    def __init__(self, path: Path, subject: str) -> None:
        self._subject = subject
        self._storages: dict[str, Tensor] = {}
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise UsageError(f"cannot read {subject}: {error.strerror}") from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise UsageError(
                f"{subject} must be an archive as torch.save writes it since torch 1.6; save an "
                "older file again with a newer torch where you trust it"
            ) from None
        self._sizes = {entry.filename: entry.file_size for entry in self._zip.infolist()}
        packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in self._zip.infolist())
        if packed or sum(self._sizes.values()) > path.stat().st_size:
            self._zip.close()
            raise UsageError(
                f"{subject} is refused because its records are compressed or overlap, which those "
                "of torch.save never do"
            )
        roots = [name[: -len("data.pkl")] for name in self._sizes if name.endswith("/data.pkl")]
        self._root = roots[0] if len(roots) == 1 else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._zip.close()

    def pickle(self) -> bytes:
        """Return the pickle; raises `UsageError` if there isn't exactly one."""
        if not self._root:
            raise UsageError(f"{self._subject} is no torch archive: it must have one data.pkl")
        if f"{self._root}byteorder" in self._sizes and self._record("byteorder") != b"little":
            raise UsageError(f"{self._subject} must be little-endian; save it again on another CPU")
        return self._record("data.pkl")

    def is_storage(self, name: str) -> bool:
        """Return whether a name in a pickle is that of a kind of storage."""
        return name in _STORAGES

    def storage(self, persistent_id: Any) -> Tensor:
        """Return all numbers of a storage, one dimension, as a persistent id names it."""
        kind, storage_type, key, _, count = persistent_id
        fits = isinstance(storage_type, Name) and isinstance(key, str) and isinstance(count, int)
        if kind != "storage" or not fits:
            raise ValueError("a persistent id must name a storage")
        if key not in self._storages:
            dtype = _STORAGES[storage_type.text]
            record = f"data/{key}"
            if self._sizes.get(f"{self._root}{record}") != count * dtype.itemsize:
                raise ValueError(f"storage {key!r} must have {count} numbers of {dtype}")
            self._storages[key] = (
                torch.frombuffer(bytearray(self._record(record)), dtype=dtype)
                if count
                else torch.empty(0, dtype=dtype)
            )
        return self._storages[key]

    def _record(self, name: str) -> bytes:
        try:
            return self._zip.read(f"{self._root}{name}")
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise UsageError(
                f"{self._subject} is damaged at {name} ({error}); fetch it again"
            ) from None


def rebuild_tensor(
    storage: Any,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """Return the view of a storage that torch's pickles describe, after checking that it fits."""
    del requires_grad, hooks, metadata
    numbers = (offset, *size, *stride)
    if not isinstance(storage, Tensor) or not all(type(number) is int for number in numbers):
        raise ValueError("a tensor must be a view of a storage")
    if len(size) != len(stride) or len(size) > _MOST_DIMENSIONS:
        raise ValueError(f"a tensor must have at most {_MOST_DIMENSIONS} sizes, each with a stride")
    if min(numbers) < 0 or math.prod(size) > len(storage):
        raise ValueError("a tensor must fit its storage")
    last = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= len(storage):
        raise ValueError("a tensor must fit its storage")
    return storage.as_strided(tuple(size), tuple(stride), offset)

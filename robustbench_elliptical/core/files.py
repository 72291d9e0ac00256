"""Files that a user names: whatever a broken or unreachable one raises becomes a `UsageError`."""

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robustbench_elliptical.core.errors import UsageError

__all__ = ["existing", "reading"]

_BROKEN = (
    EOFError,
    MemoryError,
    NotImplementedError,  # an unknown zip compression
    OverflowError,
    RuntimeError,  # an encrypted zip
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,  # a damaged npy header
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever reading `path` raises into a `UsageError` that names the file."""
    try:
        yield
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except _BROKEN as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise UsageError(f"{path} is broken: {reason or type(error).__name__}") from None


def existing(path: Path, kind: str, hint: str) -> Path:
    """Return `path` if it is a ``"file"`` or a ``"folder"``, whichever `kind` asks for.

    Raises
    ------
    UsageError
        If nothing is there, it is something else, or it can't be looked at; ends with `hint`.
    """
    with reading(path):
        found = path.exists()
        right = path.is_dir() if kind == "folder" else path.is_file()
    if not right:
        problem = f"is not a {kind}" if found else "does not exist"
        raise UsageError(f"{path} {problem}; {hint}")
    return path

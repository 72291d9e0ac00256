"""Read text files line by line."""

from collections.abc import Iterator
from pathlib import Path

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.files import reading

__all__ = ["read_lines"]


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, holding one at a time; a byte order mark is dropped.

    Raises
    ------
    UsageError
        If the file can't be read or is not UTF-8.
    """
    with reading(path), path.open(encoding="utf-8-sig") as stream:
        try:
            for line in stream:
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{path} is not UTF-8 text: {error.reason}; convert it, "
                "for example with iconv -f latin1 -t utf-8"
            ) from None

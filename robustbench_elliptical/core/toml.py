"""Read a TOML file that a user names, with one sentence for whatever is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.resources import shipped

__all__ = ["named_file", "read_toml"]


def read_toml(path: Path, subject: str) -> dict[str, Any]:
    """Return the file's values; raises `UsageError` if it can't be read or isn't TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {subject}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{subject} is not valid TOML: {error}") from None


def named_file(name: str, folder: str, kind: str) -> Path:
    """Return the shipped file ``NAME.toml`` of `folder`, or the path if `name` ends in ``.toml``.

    Raises
    ------
    UsageError
        If nothing that ships has this name; the message suggests neighbours.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return path
    files = {each.stem: each for each in shipped(folder).glob("*.toml")}
    if name not in files:
        raise UnknownNameError(kind, name, files, f"A {kind} of your own ends in .toml.")
    return files[name]

"""The arrays of pictures beside a result: safetensors, which holds numbers and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results.internals import PictureRecord

__all__ = ["PICTURES_FILE", "read_pictures", "write_pictures"]

PICTURES_FILE = "pictures.safetensors"

Arrays = Mapping[str, npt.NDArray[np.float16]]


def write_pictures(folder: Path, arrays: Arrays) -> None:
    """Write the arrays into a result folder; no file where there are none."""
    if not arrays:
        return
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    (folder / PICTURES_FILE).write_bytes(content)


def read_pictures(
    folder: Path, pictures: Sequence[PictureRecord]
) -> dict[str, npt.NDArray[np.float16]]:
    """Read the arrays of the pictures that a result names.

    Raises
    ------
    UsageError
        If the file is missing or broken, or an array is missing, of another kind than
        `PictureRecord` states, or not finite in [0, 1].
    """
    if not pictures:
        return {}
    path = folder / PICTURES_FILE
    try:
        found = load_file(path)
    except OSError as error:
        raise UsageError(f"cannot read results {path}: {error.strerror or error}") from None
    except (SafetensorError, ValueError, KeyError) as error:
        raise UsageError(f"results in {folder} are broken: {PICTURES_FILE}: {error}") from None
    arrays: dict[str, npt.NDArray[np.float16]] = {}
    for picture in pictures:
        for name, axes, needed in (("", 3, True), ("-attention", 2, False)):
            pair = [f"{picture.key}/{side}{name}" for side in ("clean", "attacked")]
            if not needed and not any(key in found for key in pair):
                continue
            _check(folder, pair, found, axes)
            arrays |= {key: found[key] for key in pair}
    return arrays


def _check(
    folder: Path, pair: Sequence[str], found: Mapping[str, npt.NDArray[Any]], axes: int
) -> None:
    """Refuse what no picture or map can be."""
    for key in pair:
        array = found.get(key)
        if array is None:
            problem = "is missing"
        elif array.dtype != np.float16 or array.ndim != axes or array.size == 0:
            problem = f"must be float16 of {axes} axes, got {array.dtype} of shape {array.shape}"
        elif array.shape != found[pair[0]].shape:
            problem = f"must have the shape of {pair[0]}"
        elif not bool(((array >= 0) & (array <= 1)).all()):
            problem = "must lie in [0, 1]"
        else:
            continue
        raise UsageError(f"results in {folder} are broken: {PICTURES_FILE}: {key} {problem}")

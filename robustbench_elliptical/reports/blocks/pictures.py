"""Pictures of an attack: left in their folders until they are shown, a run may hold many."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.results import PictureRecord
from robustbench_elliptical.results.pictures import read_pictures

__all__ = ["Picture", "StoredPicture", "load_pictures"]

Array = npt.NDArray[np.float64]


class StoredPicture(NamedTuple):
    """A picture that still lies in its folder."""

    record: PictureRecord
    folder: Path


class Picture(NamedTuple):
    """An image before and after an attack."""

    record: PictureRecord
    clean: Array
    """Pixels in [0, 1] of shape (channels, height, width)."""
    attacked: Array
    """The same after the attack."""
    clean_attention: Array | None
    """Attention of the class token to the patches, of shape (rows, columns)."""
    attacked_attention: Array | None
    """The same after the attack."""


def load_pictures(stored: Sequence[StoredPicture]) -> list[Picture]:
    """Read the arrays of some pictures, each folder once.

    Raises
    ------
    UsageError
        If a file can't be read, or an array is missing or not what its record says.
    """
    arrays = {
        folder: read_pictures(folder, [each.record for each in stored if each.folder == folder])
        for folder in dict.fromkeys(each.folder for each in stored)
    }
    return [_picture(each.record, arrays[each.folder]) for each in stored]


def _picture(record: PictureRecord, arrays: dict[str, npt.NDArray[np.float16]]) -> Picture:
    clean, attacked = (
        arrays[f"{record.key}/{side}"].astype(np.float64) for side in ("clean", "attacked")
    )
    maps = [arrays.get(f"{record.key}/{side}-attention") for side in ("clean", "attacked")]
    before, after = (None if each is None else each.astype(np.float64) for each in maps)
    return Picture(record, clean, attacked, before, after)

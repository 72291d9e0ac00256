"""The registry of data sets: what ``NAME`` or ``NAME:PLACE`` on the command line opens."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.core.registry import Registry
from robustbench_elliptical.data.base import ImageData

__all__ = ["DATA", "DataRequest", "DataSource", "Split"]

Split = Literal["test", "train"]


@dataclass(frozen=True)
class DataRequest:
    """What a user asks of a source."""

    place: Path | None
    """What follows the colon, ``~`` expanded; none without a colon."""
    split: Split
    """Which part, of a set that has parts."""
    preprocessing: Preprocessing | None
    """How to prepare images of any size; none for the default."""
    num_classes: int | None
    """Classes of the model that the set is for, if known."""


@dataclass(frozen=True)
class DataSource:
    """A kind of data set."""

    usage: tuple[str, ...]
    """The ways to write it: ``("npz:FILE",)``."""
    load: Callable[[DataRequest], ImageData]
    """Opens the set; the place is there exactly when the user wrote one of `usage`."""


DATA: Registry[DataSource] = Registry("data set")
"""Every data set by name."""

"""Read the records of several result folders; the rows are read task by task."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results import Results, read_record

__all__ = ["Run", "read_runs"]


class Run(NamedTuple):
    """One result folder."""

    label: str
    """Name of the folder, with a number where several folders are called so."""
    folder: Path
    """Where its rows lie."""
    results: Results
    """What it says."""


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read the records of result folders, also those of older versions of this package.

    Raises
    ------
    UsageError
        If there is none, one is given twice, or a record is missing or broken.
    """
    if not folders:
        raise UsageError("RUN must name at least one result folder, got none; run `eval` first")
    seen: dict[Path, Path] = {}
    runs: list[Run] = []
    for folder in folders:
        place = folder.resolve()
        if place in seen:
            raise UsageError(
                f"RUN must name each result folder once, got {folder} twice; leave one out"
            )
        seen[place] = folder
        runs.append(Run(_label(place.name, runs), folder, read_record(folder)))
    return runs


def _label(name: str, runs: Sequence[Run]) -> str:
    taken = [run.label for run in runs]
    label, number = name, 2
    while label in taken:
        label, number = f"{name} ({number})", number + 1
    return label

"""Read the records of several result folders; the rows are read task by task."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results import SCHEMA_VERSION, Results
from robustbench_elliptical.results.migration import migrate

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
        runs.append(Run(_label(place.name, runs), folder, _read_record(folder)))
    return runs


def _label(name: str, runs: Sequence[Run]) -> str:
    taken = [run.label for run in runs]
    label, number = name, 2
    while label in taken:
        label, number = f"{name} ({number})", number + 1
    return label


def _read_record(folder: Path) -> Results:
    path = folder / "results.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"RUN must be a folder that `eval` wrote; cannot read {path}: {error.strerror}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"results {path} are broken: {error}") from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise UsageError(
            f"results {path} have schema version {version}, this package reads up to "
            f"{SCHEMA_VERSION}; install a newer robustbench-elliptical"
        )
    try:
        return Results.model_validate(migrate(document) if version is not None else document)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise UsageError(f"results {path} are broken: {place}: {problem['msg']}") from None

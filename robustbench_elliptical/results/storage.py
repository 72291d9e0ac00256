"""Write a result folder whole or not at all, and read it back."""

import errno
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results.image_classification import SAMPLE_COLUMNS
from robustbench_elliptical.results.language_modelling import DOCUMENT_COLUMNS
from robustbench_elliptical.results.migration import migrate
from robustbench_elliptical.results.pictures import read_pictures, write_pictures
from robustbench_elliptical.results.schema import SCHEMA_VERSION, Results

__all__ = ["Evaluation", "check_writable", "read_record", "read_results", "write_results"]

RESULTS_FILE = "results.json"
TABLE_FILE = "table.md"


class _RowFile(NamedTuple):
    """A file of rows: one a task."""

    name: str
    columns: tuple[str, ...]
    text: tuple[str, ...]
    """Columns of text, never read as numbers."""
    optional: tuple[str, ...]
    """Columns of numbers that may be empty."""


SAMPLES = _RowFile(
    "samples.csv",
    SAMPLE_COLUMNS,
    ("model", "attack", "sample_id", "outcome", "reason"),
    ("prediction", "distance"),
)
DOCUMENTS = _RowFile(
    "documents.csv",
    DOCUMENT_COLUMNS,
    ("model", "attack", "document", "outcome", "reason"),
    ("loss", "clean_target_loss"),
)


class Evaluation(NamedTuple):
    """What an evaluation found: a result and its rows, empty for a task that was not evaluated."""

    results: Results
    samples: pd.DataFrame
    """Columns `SAMPLE_COLUMNS`."""
    documents: pd.DataFrame
    """Columns `DOCUMENT_COLUMNS`."""
    pictures: Mapping[str, npt.NDArray[np.float16]] = MappingProxyType({})
    """Arrays of the pictures that the results name, see `PictureRecord`."""


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn what the operating system says into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            problem = "there is no space left on its disk; free some or choose another --output"
        else:
            problem = f"{error.strerror or error}; choose a folder you may write to by --output"
        raise UsageError(f"cannot write results to {folder}: {problem}") from None


def check_writable(folder: Path) -> None:
    """Fail before a long run, not after it, if `folder` can't be created.

    Raises
    ------
    UsageError
        If the folder exists already or its parent can't be written.
    """
    if folder.exists():
        raise UsageError(f"output folder {folder} exists already; choose another --output")
    existing = folder.parent
    while not existing.exists():
        existing = existing.parent
    with _disk_errors(folder), tempfile.TemporaryFile(dir=existing):
        pass


def write_results(folder: Path, evaluation: Evaluation, render: Callable[[Results], str]) -> None:
    """Write `results.json`, the rows of every task, pictures and `table.md` into a new folder.

    They are written beside it first and renamed into place, so a reader never sees half of them.

    Parameters
    ----------
    folder
        Must not exist.
    evaluation
        The record and its rows.
    render
        Makes the Markdown table.

    Raises
    ------
    UsageError
        If the folder can't be written or the disk is full; nothing is left behind.
    """
    with _disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        try:
            document = evaluation.results.model_dump_json(indent=2) + "\n"
            (partial / RESULTS_FILE).write_text(document, encoding="utf-8")
            if evaluation.results.images is not None:
                _write_rows(partial, SAMPLES, evaluation.samples)
            if evaluation.results.language is not None:
                _write_rows(partial, DOCUMENTS, evaluation.documents)
            write_pictures(partial, evaluation.pictures)
            (partial / TABLE_FILE).write_text(render(evaluation.results), encoding="utf-8")
            partial.chmod(0o755)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def read_results(folder: Path) -> Evaluation:
    """Read a result folder, also one that an older version of this package wrote.

    Raises
    ------
    UsageError
        If a file is missing or broken, or was written by a newer version of this package.
    """
    results = read_record(folder)
    samples = _read_rows(folder, SAMPLES, present=results.images is not None)
    documents = _read_rows(folder, DOCUMENTS, present=results.language is not None)
    images = [] if results.images is None else results.images.pictures
    return Evaluation(results, samples, documents, read_pictures(folder, images))


def read_record(folder: Path) -> Results:
    """Read the record of a result folder without its rows; see `read_results`.

    Raises
    ------
    UsageError
        If it is missing or broken, or was written by a newer version of this package.
    """
    path = folder / RESULTS_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"RUN must be a folder that `eval` wrote; cannot read results {path}: {error.strerror}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"results {path} are broken: {error}") from None
    return _parsed(document, path)


def _parsed(document: Any, path: Path) -> Results:
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


def _write_rows(folder: Path, file: _RowFile, rows: pd.DataFrame) -> None:
    rows.to_csv(folder / file.name, index=False, columns=list(file.columns))


def _read_rows(folder: Path, file: _RowFile, *, present: bool) -> pd.DataFrame:
    if not present:
        return pd.DataFrame(columns=list(file.columns))
    try:
        rows = pd.read_csv(
            folder / file.name,
            dtype=dict.fromkeys(file.text, "string"),
            keep_default_na=False,
            na_values={name: [""] for name in file.optional},
        )
    except OSError as error:
        raise UsageError(f"cannot read results {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"results in {folder} are broken: {error}") from None
    missing = [name for name in file.columns if name not in rows.columns]
    if missing:
        raise UsageError(f"results in {folder} are broken: {file.name} lacks {missing[0]}")
    return rows

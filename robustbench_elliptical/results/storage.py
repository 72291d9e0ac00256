"""Write a result folder whole or not at all, and read it back."""

import errno
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results.schema import SAMPLE_COLUMNS, SCHEMA_VERSION, Results

__all__ = ["check_writable", "read_results", "write_results"]

RESULTS_FILE = "results.json"
SAMPLES_FILE = "samples.csv"
TABLE_FILE = "table.md"

_TEXT_COLUMNS = ("model", "attack", "sample_id", "outcome", "reason")


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


def write_results(
    folder: Path, results: Results, samples: pd.DataFrame, render: Callable[[Results], str]
) -> None:
    """Write `results.json`, `samples.csv` and `table.md` into a new folder.

    They are written beside it first and renamed into place, so a reader never sees half of them.

    Parameters
    ----------
    folder
        Must not exist.
    results, samples
        The record and its rows, with the columns `SAMPLE_COLUMNS`.
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
            document = results.model_dump_json(indent=2) + "\n"
            (partial / RESULTS_FILE).write_text(document, encoding="utf-8")
            samples.to_csv(partial / SAMPLES_FILE, index=False, columns=list(SAMPLE_COLUMNS))
            (partial / TABLE_FILE).write_text(render(results), encoding="utf-8")
            partial.chmod(0o755)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def read_results(folder: Path) -> tuple[Results, pd.DataFrame]:
    """Read a result folder.

    Raises
    ------
    UsageError
        If a file is missing or broken, or was written by a newer version of this package.
    """
    path = folder / RESULTS_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        samples = pd.read_csv(
            folder / SAMPLES_FILE,
            dtype=dict.fromkeys(_TEXT_COLUMNS, "string"),
            keep_default_na=False,
            na_values={"prediction": [""], "distance": [""]},
        )
    except OSError as error:
        raise UsageError(f"cannot read results {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"results in {folder} are broken: {error}") from None
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise UsageError(
            f"results {path} have schema version {version}, this package reads up to "
            f"{SCHEMA_VERSION}; install a newer robustbench-elliptical"
        )
    missing = [name for name in SAMPLE_COLUMNS if name not in samples.columns]
    if missing:
        raise UsageError(f"results in {folder} are broken: samples.csv lacks {missing[0]}")
    try:
        return Results.model_validate(document), samples
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise UsageError(f"results {path} are broken: {place}: {problem['msg']}") from None

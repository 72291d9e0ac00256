"""The baseline's file: written whole or not at all, read with every defect named."""

import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.files import reading
from robustbench_elliptical.gate.baseline import BASELINE_VERSION, Baseline
from robustbench_elliptical.gate.outputs.escaping import one_line

__all__ = ["check_place", "read_baseline", "write_baseline", "write_whole"]


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline, compressed if the name ends in ``.gz``; the same run gives the same bytes.

    Raises
    ------
    UsageError
        If the file exists already or can't be written; nothing is left behind.
    """
    if path.exists():
        raise UsageError(f"baseline {path} exists already; remove it or choose another --output")
    content = (baseline.model_dump_json() + "\n").encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    write_whole(path, content)


def check_place(path: Path) -> None:
    """Fail before a long run, not after it, if a file can't be written.

    Raises
    ------
    UsageError
        If it is a folder, or its own can't be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file to write")
    existing = path.parent
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}; choose another place"
        ) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it there, so that nobody reads half of it.

    Raises
    ------
    UsageError
        If it can't be written.
    """
    partial = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(partial).chmod(0o644)
        Path(partial).replace(path)
        partial = None
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another "
            "place"
        ) from None
    finally:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises
    ------
    UsageError
        If it can't be read, is broken, or was written by a newer version of this package.
    """
    with reading(path):
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        document = json.loads(content)
    _check_version(document, path)
    try:
        baseline = Baseline.model_validate(document)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise UsageError(f"baseline {path} is broken: {place}: {problem['msg']}") from None
    _check_models(baseline, path)
    _check_lengths(baseline, path)
    return baseline


def _check_version(document: Any, path: Path) -> None:
    version = document.get("schema_version") if isinstance(document, dict) else None
    if version is None or "results" not in document:
        raise UsageError(
            f"{path} is not a baseline; write one by: elliptical-robust baseline RUN --output FILE"
        )
    if isinstance(version, int) and version > BASELINE_VERSION:
        raise UsageError(
            f"baseline {path} has schema version {version}, this package reads up to "
            f"{BASELINE_VERSION}; install a newer robustbench-elliptical"
        )


def _check_models(baseline: Baseline, path: Path) -> None:
    """Refuse a file in which some model has no outcomes."""
    frozen = {each.model for each in baseline.samples}
    frozen |= {each.model for each in baseline.documents}
    for task in baseline.results.tasks:
        for model in task.models:
            if model.name not in frozen:
                raise UsageError(
                    f"baseline {path} is broken: outcomes of {one_line(model.name)} are missing"
                )


def _check_lengths(baseline: Baseline, path: Path) -> None:
    """Refuse a file in which some sample has no outcome."""
    for samples in baseline.samples:
        lengths = [len(samples.labels), *(len(each.outcomes) for each in samples.units)]
        if any(length != len(samples.ids) for length in lengths):
            raise UsageError(
                f"baseline {path} is broken: outcomes of {one_line(samples.model)} are missing"
            )
    for documents in baseline.documents:
        for unit in documents.units:
            lengths = [len(unit.losses), len(unit.targets), len(unit.eligible)]
            if any(length != len(documents.ids) for length in lengths):
                raise UsageError(
                    f"baseline {path} is broken: losses of {one_line(documents.model)} are missing"
                )

"""Read `samples.csv` in pieces into one small row of codes for each model, attack and epsilon."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.runs import Run

__all__ = ["ABSENT", "FAILED", "FOOLED", "ROBUST", "SKIPPED", "Codes", "Outcomes", "read_outcomes"]

Codes = npt.NDArray[np.int8]
"""The outcome of every sample of a block, `ABSENT` where there is none."""

ABSENT, ROBUST, FOOLED, SKIPPED, FAILED = -1, 0, 1, 2, 3

_NAMES = pd.Index(["robust", "fooled", "skipped", "failed"])
_COLUMNS = {
    "model": "category",
    "attack": "category",
    "epsilon": "float64",
    "sample_id": "object",
    "outcome": "category",
}
_ROWS = 250_000
"""Rows read at once."""

Key = tuple[str, str, float]
"""Model, attack and rounded epsilon."""


class Outcomes(NamedTuple):
    """The outcomes of one run."""

    samples: "pd.Index[str]"
    """Ids, in order of first appearance."""
    codes: Mapping[Key, Codes]
    """One code a sample; epsilon as `rounded` gives it."""


def rounded(epsilon: float) -> float:
    """Return an epsilon that no longer shows how a file wrote it."""
    return round(epsilon, 12)


def read_outcomes(run: Run) -> Outcomes:
    """Read the outcomes of a run.

    Raises
    ------
    UsageError
        If the file can't be read, lacks a column, or has an unknown outcome or a sample twice.
    """
    samples: pd.Index[str] = pd.Index([], dtype=object)
    parts: dict[Key, list[tuple[npt.NDArray[np.intp], Codes]]] = {}
    path = run.folder / "samples.csv"
    try:
        pieces = pd.read_csv(
            path,
            usecols=list(_COLUMNS),
            dtype=_COLUMNS,
            na_filter=False,
            chunksize=_ROWS,
        )
        with pieces:
            for rows in pieces:
                samples, places = _places(samples, rows["sample_id"])
                codes = _codes(rows["outcome"], run)
                for key, members in _groups(rows):
                    parts.setdefault(key, []).append((places[members], codes[members]))
    except OSError as error:
        raise UsageError(f"cannot read results {path}: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"results {path} are broken: {error}") from None
    return Outcomes(samples, {key: _joined(key, parts[key], len(samples), run) for key in parts})


def _places(
    samples: "pd.Index[str]", ids: "pd.Series[str]"
) -> tuple["pd.Index[str]", npt.NDArray[np.intp]]:
    """Return the ids seen so far and the place of each of these among them."""
    places = samples.get_indexer(pd.Index(ids))
    if (places < 0).any():
        new = pd.unique(ids[places < 0])
        samples = samples.append(pd.Index(new, dtype=object))
        places = samples.get_indexer(pd.Index(ids))
    return samples, places


def _codes(outcomes: "pd.Series[str]", run: Run) -> Codes:
    known = _NAMES.get_indexer(outcomes.cat.categories)
    if (known < 0).any():
        name = outcomes.cat.categories[known < 0][0]
        raise UsageError(
            f"results {run.folder} are broken: samples.csv has the unknown outcome {name!r}"
        )
    codes: Codes = known.astype(np.int8)[outcomes.cat.codes.to_numpy()]
    return codes


def _groups(rows: pd.DataFrame) -> list[tuple[Key, npt.NDArray[np.intp]]]:
    grouped = rows.groupby(["model", "attack", "epsilon"], observed=True, sort=False)
    return [(_key(key), np.asarray(members)) for key, members in grouped.indices.items()]


def _key(key: Any) -> Key:
    model, attack, epsilon = key
    return str(model), str(attack), rounded(float(epsilon))


def _joined(
    key: Key, parts: list[tuple[npt.NDArray[np.intp], Codes]], samples: int, run: Run
) -> Codes:
    codes = np.full(samples, ABSENT, dtype=np.int8)
    for places, values in parts:
        codes[places] = values
    if int((codes != ABSENT).sum()) != sum(len(places) for places, _ in parts):
        raise UsageError(
            f"results {run.folder} are broken: samples.csv has a sample twice for model "
            f"{key[0]!r} under {key[1]!r}"
        )
    return codes

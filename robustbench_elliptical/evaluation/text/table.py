"""Per-document records, and the summaries that are computed from them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.evaluation.settings import CLEAN
from robustbench_elliptical.results import (
    DOCUMENT_COLUMNS,
    PerplexityComparison,
    PerplexitySummary,
)
from robustbench_elliptical.results.perplexity import (
    perplexity,
    perplexity_interval,
    perplexity_ratio,
)

__all__ = ["DocumentRow", "DocumentTable", "TextUnit", "compare", "summarise"]


class TextUnit(NamedTuple):
    """One cell of the evaluation: a model on a text contaminated at a rate."""

    model: str
    attack: str
    rate: float

    @property
    def is_clean(self) -> bool:
        """Whether nothing was contaminated."""
        return self.attack == CLEAN


class DocumentRow(NamedTuple):
    """One document of one unit; the fields are the columns of `documents.csv`."""

    model: str
    attack: str
    rate: float
    document: str
    outcome: str
    targets: int
    loss: float
    clean_targets: int
    clean_target_loss: float
    words: int
    bytes: int
    eligible: int
    swapped: int
    forwards: int
    backwards: int
    reason: str


class DocumentTable:
    """All records of a run, in the order they were made."""

    def __init__(self) -> None:
        self._rows: dict[TextUnit, list[DocumentRow]] = {}
        self._seconds: dict[TextUnit, float] = {}

    def add(self, rows: Iterable[DocumentRow], seconds: float) -> None:
        """Append rows of one unit."""
        for row in rows:
            unit = TextUnit(row.model, row.attack, row.rate)
            self._rows.setdefault(unit, []).append(row)
            self._seconds.setdefault(unit, 0.0)
        self._seconds[unit] += seconds

    def units(self) -> list[TextUnit]:
        """Return the units with records, in order of first appearance."""
        return list(self._rows)

    def rows(self, unit: TextUnit) -> pd.DataFrame:
        """Return the records of a unit."""
        return pd.DataFrame(self._rows[unit], columns=list(DOCUMENT_COLUMNS))

    def seconds(self, unit: TextUnit) -> float:
        """Return the wall time spent on a unit."""
        return self._seconds[unit]

    def frame(self) -> pd.DataFrame:
        """Return one row a record, with the columns of `documents.csv`."""
        rows = [row for unit in self._rows.values() for row in unit]
        return pd.DataFrame(rows, columns=list(DOCUMENT_COLUMNS))


def summarise(table: DocumentTable, unit: TextUnit, seed: int) -> PerplexitySummary:
    """Pool the documents of a unit; `seed` is that of the bootstrap."""
    rows = table.rows(unit)
    scored = rows[rows["outcome"] == "scored"]
    everything = _estimate(scored["loss"], scored["targets"], seed)
    clean = _estimate(scored["clean_target_loss"], scored["clean_targets"], seed)
    loss = float(scored["loss"].sum())
    return PerplexitySummary(
        model=unit.model,
        attack=unit.attack,
        rate=unit.rate,
        realised_rate=float(rows["swapped"].sum() / max(rows["eligible"].sum(), 1)),
        documents=len(rows),
        failed=len(rows) - len(scored),
        targets=int(scored["targets"].sum()),
        clean_targets=int(scored["clean_targets"].sum()),
        words=int(scored["words"].sum()),
        bytes=int(scored["bytes"].sum()),
        perplexity=everything.value,
        low=everything.low,
        high=everything.high,
        clean_target_perplexity=clean.value,
        clean_target_low=clean.low,
        clean_target_high=clean.high,
        word_perplexity=_per(loss, scored["words"]),
        byte_perplexity=_per(loss, scored["bytes"]),
        forwards=int(rows["forwards"].sum()),
        backwards=int(rows["backwards"].sum()),
        seconds=table.seconds(unit),
    )


def compare(
    table: DocumentTable, unit: TextUnit, reference: str, seed: int
) -> PerplexityComparison | None:
    """Compare a unit with the same text read by another model; none without common documents."""
    other = TextUnit(reference, unit.attack, unit.rate)
    if other not in table.units():
        return None
    columns = ["document", "loss", "words"]
    first, second = (
        rows.loc[rows["outcome"] == "scored", columns]
        for rows in (table.rows(unit), table.rows(other))
    )
    both = first.merge(second, on="document", suffixes=("_a", "_b"))
    if both.empty:
        return None
    sums = [_array(both[name]) for name in ("loss_a", "words_a", "loss_b", "words_b")]
    found = perplexity_ratio(sums[0], sums[1], sums[2], sums[3], seed=seed)
    ratio = np.exp(sums[0].sum() / sums[1].sum() - sums[2].sum() / sums[3].sum())
    return PerplexityComparison(
        model=unit.model,
        reference=reference,
        attack=unit.attack,
        rate=unit.rate,
        documents=len(both),
        ratio=float(ratio),
        low=found.low if found else None,
        high=found.high if found else None,
    )


class _Estimate(NamedTuple):
    value: float | None
    low: float | None
    high: float | None


def _estimate(losses: "pd.Series[float]", targets: "pd.Series[int]", seed: int) -> _Estimate:
    used = targets > 0
    sums, counts = _array(losses[used]), _array(targets[used])
    if not len(sums):
        return _Estimate(None, None, None)
    interval = perplexity_interval(sums, counts, seed=seed)
    value = perplexity(float(sums.sum()), int(counts.sum()))
    return _Estimate(value, *(interval or (None, None)))


def _array(column: "pd.Series[float] | pd.Series[int]") -> npt.NDArray[np.float64]:
    return np.asarray(column, dtype=np.float64)


def _per(loss: float, units: "pd.Series[int]") -> float | None:
    total = int(units.sum())
    return perplexity(loss, total) if total else None

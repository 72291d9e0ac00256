"""Perplexity of language models with several training seeds."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.reports.blocks import TextBlock, TextEntry, TextUnit
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.pooling import (
    NOTE,
    Family,
    Variance,
    estimate,
    families,
    spread,
)
from robustbench_elliptical.reports.contents.wording import number, p_text, records, span
from robustbench_elliptical.results import holm

__all__ = ["family_ratio_frame", "pooled_perplexity_frame", "text_seed_tables"]


class _Pool(NamedTuple):
    logs: npt.NDArray[np.float64]
    """Log perplexity per word of each seed on the shared documents."""
    documents: pd.DataFrame
    """Mean loss over seeds and words of each document, by its id."""


def pooled_perplexity_frame(block: TextBlock) -> pd.DataFrame:
    """Return one row a family and unit: geometric mean over seeds, spread, interval."""
    return pd.DataFrame(
        [
            row
            for family in families(block.entries)
            for unit in block.units()
            for row in _pooled(family, unit)
        ]
    )


def _pooled(family: Family[TextEntry], unit: TextUnit) -> list[dict[str, object]]:
    pool = _pool(family, unit)
    if pool is None:
        return []
    centre = float(pool.logs.mean())
    found = estimate(centre, [spread(pool.logs), *_sampling(pool.documents, centre)])
    low, high, lowest, highest = np.exp([found.low, found.high, pool.logs.min(), pool.logs.max()])
    return [
        {
            "family": family.label,
            "attack": unit.attack,
            "rate": unit.rate,
            "seeds": len(pool.logs),
            "documents": len(pool.documents),
            "word_perplexity": float(np.exp(centre)),
            "low": float(low),
            "high": float(high),
            "sd_of_log_between_seeds": float(pool.logs.std(ddof=1)),
            "lowest": float(lowest),
            "highest": float(highest),
        }
    ]


_COMPARED = (
    "attack",
    "rate",
    "family_a",
    "family_b",
    "documents",
    "ratio",
    "low",
    "high",
    "p_value",
)


def family_ratio_frame(block: TextBlock) -> pd.DataFrame:
    """Compare every two families on every text; `p_holm` is corrected for all of them."""
    rows = [
        row
        for unit in block.units()
        for one, other in combinations(families(block.entries), 2)
        for row in _compared(one, other, unit)
    ]
    frame = pd.DataFrame(rows, columns=list(_COMPARED))
    frame["p_holm"] = holm(frame["p_value"].to_numpy(float))
    return frame


def _compared(
    one: Family[TextEntry], other: Family[TextEntry], unit: TextUnit
) -> list[tuple[object, ...]]:
    first, second = (_pool(family, unit) for family in (one, other))
    if first is None or second is None:
        return []
    both = first.documents.add_suffix("_a").join(second.documents.add_suffix("_b"), how="inner")
    if both.empty:
        return []
    gaps = pd.DataFrame({"loss": both["loss_a"] - both["loss_b"], "words": both["words_a"]})
    gap = float(gaps["loss"].sum() / gaps["words"].sum())
    parts = [spread(first.logs), spread(second.logs), *_sampling(gaps, gap)]
    found = estimate(gap, parts)
    ratio, low, high = (float(value) for value in np.exp([gap, found.low, found.high]))
    return [(*unit, one.label, other.label, len(both), ratio, low, high, found.p_value)]


def _pool(family: Family[TextEntry], unit: TextUnit) -> _Pool | None:
    """Pool the documents that all seeds scored; none unless all were measured in one way."""
    entries = family.entries
    if len({entry.way for entry in entries}) > 1:
        return None
    frames = [entry.documents.get(unit) for entry in entries]
    known = [frame for frame in frames if frame is not None and len(frame)]
    if len(known) < len(entries):
        return None
    losses = pd.concat([frame["loss"] for frame in known], axis=1, join="inner")
    words = known[0]["words"].reindex(losses.index)
    used = words > 0
    if not used.any():
        return None
    sums, counts = losses[used], words[used]
    logs = sums.sum().to_numpy(float) / float(counts.sum())
    return _Pool(logs, pd.DataFrame({"loss": sums.mean(axis=1), "words": counts}))


def _sampling(documents: pd.DataFrame, mean: float) -> list[Variance]:
    """Return the variance of a loss per word by the sampling of documents, linearised."""
    count = len(documents)
    if count < 2:
        return []
    rest = documents["loss"] - mean * documents["words"]
    variance = float((rest**2).sum()) * count / (count - 1) / float(documents["words"].sum()) ** 2
    return [Variance(variance, count - 1)]


def text_seed_tables(pooled: pd.DataFrame, compared: pd.DataFrame, name: str) -> list[Table]:
    """Return the tables of the families; none where no model has several seeds."""
    if pooled.empty:
        return []
    title = "Perplexity per word over training seeds, geometric mean"
    rows = tuple(_mean(row) for row in records(pooled))
    tables = [Table(f"{name}-seeds", title, _MEANS, rows, (NOTE,), beside=True)]
    if not compared.empty:
        note = (
            "Ratios of the geometric means over seeds, intervals and p as for the means; Holm's "
            f"correction over all {len(compared)} comparisons of this table."
        )
        title = "Ratios between models with several seeds, first over second"
        rows = tuple(_ratio(row) for row in records(compared))
        tables.append(Table(f"{name}-seed-differences", title, _RATIOS, rows, (note,), beside=True))
    return tables


_MEANS = (
    Column("model", numeric=False),
    Column("attack, rate", numeric=False),
    Column("seeds"),
    Column("documents"),
    Column("perplexity per word"),
    Column("lowest to highest seed"),
)
_RATIOS = (
    Column("attack, rate", numeric=False),
    Column("first model", numeric=False),
    Column("second model", numeric=False),
    Column("ratio, perplexity per word"),
    Column("p, Holm"),
    Column("p"),
    Column("documents"),
)


def _mean(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(row["family"]),
        Cell(TextUnit(row["attack"], row["rate"]).title),
        Cell(str(row["seeds"])),
        Cell(str(row["documents"])),
        Cell(number(row["word_perplexity"]), span(row["low"], row["high"])),
        Cell(f"{number(row['lowest'])} to {number(row['highest'])}"),
    )


def _ratio(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(TextUnit(row["attack"], row["rate"]).title),
        Cell(row["family_a"]),
        Cell(row["family_b"]),
        Cell(number(row["ratio"], 3), span(row["low"], row["high"], 3)),
        Cell(p_text(row["p_holm"]), best=row["p_holm"] < 0.05),
        Cell(p_text(row["p_value"])),
        Cell(str(row["documents"])),
    )

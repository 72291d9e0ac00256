"""Accuracy of models with several training seeds."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.blocks.outcomes import ABSENT, ROBUST
from robustbench_elliptical.reports.contents.accuracy import threat, units_at
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.pooling import (
    NOTE,
    Family,
    estimate,
    families,
    spread,
)
from robustbench_elliptical.reports.contents.wording import (
    p_text,
    percent,
    percent_range,
    records,
    signed,
)
from robustbench_elliptical.results import holm

__all__ = ["family_frame", "pooled_frame", "seed_tables"]


class _Pool(NamedTuple):
    shares: npt.NDArray[np.float64]
    """Accuracy of each seed on the shared samples."""
    means: npt.NDArray[np.float64]
    """Share of seeds that are right, on each sample; NaN where one has none."""


def pooled_frame(block: ImageBlock) -> pd.DataFrame:
    """Return one row a family and unit: mean over seeds, spread between them, interval."""
    return pd.DataFrame(
        [
            row
            for family in families(block.entries)
            for unit in block.units()
            for row in _pooled(block, family, unit)
        ]
    )


def _pooled(
    block: ImageBlock, family: Family[ImageEntry], unit: ImageUnit
) -> list[dict[str, object]]:
    pool = _pool(block, family, unit)
    if pool is None:
        return []
    mean = float(pool.shares.mean())
    used = pool.means[~np.isnan(pool.means)]
    parts = [spread(pool.shares)] + ([spread(used)] if len(used) > 1 else [])
    found = estimate(mean, parts)
    return [
        {
            "family": family.label,
            "attack": unit.attack,
            "norm": unit.norm or "",
            "epsilon": unit.epsilon,
            "seeds": len(pool.shares),
            "n": len(used),
            "mean": mean,
            "low": max(found.low, 0.0),
            "high": min(found.high, 1.0),
            "sd_between_seeds": float(pool.shares.std(ddof=1)),
            "lowest": float(pool.shares.min()),
            "highest": float(pool.shares.max()),
        }
    ]


_COMPARED = (
    "attack",
    "norm",
    "epsilon",
    "family_a",
    "family_b",
    "n",
    "difference",
    "low",
    "high",
    "p_value",
)


def family_frame(block: ImageBlock) -> pd.DataFrame:
    """Compare every two families under every attack; `p_holm` is corrected for all of them."""
    rows = [
        row
        for unit in block.units()
        if not block.is_control(unit)
        for one, other in combinations(families(block.entries), 2)
        for row in _compared(block, one, other, unit)
    ]
    frame = pd.DataFrame(rows, columns=list(_COMPARED))
    frame["p_holm"] = holm(frame["p_value"].to_numpy(float))
    return frame


def _compared(
    block: ImageBlock, one: Family[ImageEntry], other: Family[ImageEntry], unit: ImageUnit
) -> list[tuple[object, ...]]:
    first, second = (_pool(block, family, unit) for family in (one, other))
    if first is None or second is None:
        return []
    if not block.comparable(unit, one.entries[0], other.entries[0]):
        return []
    gaps = first.means - second.means
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        return []
    gap = float(gaps.mean())
    parts = [spread(first.shares), spread(second.shares)]
    parts += [spread(gaps)] if len(gaps) > 1 else []
    found = estimate(gap, parts)
    size = (unit.attack, unit.norm or "", unit.epsilon)
    low, high = max(found.low, -1.0), min(found.high, 1.0)
    return [(*size, one.label, other.label, len(gaps), gap, low, high, found.p_value)]


def _pool(block: ImageBlock, family: Family[ImageEntry], unit: ImageUnit) -> _Pool | None:
    entries = family.entries
    if not all(block.comparable(unit, entries[0], entry) for entry in entries):
        return None
    codes = np.stack([entry.codes[unit] for entry in entries])
    shared = (codes != ABSENT).all(axis=0)
    if not shared.any():
        return None
    right = codes == ROBUST
    means = np.where(shared, right.mean(axis=0), np.nan)
    return _Pool(right[:, shared].mean(axis=1), means)


def seed_tables(
    block: ImageBlock, pooled: pd.DataFrame, compared: pd.DataFrame, name: str
) -> list[Table]:
    """Return the tables of the families; none where no model has several seeds."""
    if pooled.empty:
        return []
    keys = ("family", "attack", "norm", "epsilon")
    rows = {tuple(row[key] for key in keys): row for row in records(pooled)}
    sizes = block.sizes() or [("", 0.0)]
    tables = []
    for place, (norm, epsilon) in enumerate(sizes, start=1):
        units = units_at(block, norm, epsilon)
        columns = [Column("model", numeric=False), Column("seeds"), Column("n")]
        columns += [Column(unit.attack) for unit in units]
        lines = [_line(label, units, rows) for label in dict.fromkeys(pooled["family"])]
        suffix = f"-{place}" if len(sizes) > 1 else ""
        size = ImageUnit("", norm, epsilon).size if norm else ""
        tables.append(
            Table(
                f"{name}-seeds{suffix}",
                f"Mean accuracy over training seeds in percent, {threat(norm, size)}",
                tuple(columns),
                tuple(line for line in lines if line),
                notes=(NOTE, "SD: standard deviation between seeds, in points."),
            )
        )
    return [*tables, *_differences(compared, name)]


def _line(
    label: str, units: list[ImageUnit], rows: Mapping[tuple[Any, ...], dict[str, Any]]
) -> tuple[Cell, ...]:
    found = [rows.get((label, unit.attack, unit.norm or "", unit.epsilon)) for unit in units]
    some = next((row for row in found if row is not None), None)
    if some is None:
        return ()
    cells = [Cell(label), Cell(str(some["seeds"])), Cell(str(some["n"]))]
    for row in found:
        if row is None:
            cells.append(Cell("not run"))
            continue
        n = row["n"]
        ends = percent_range(row["low"], row["high"], n)
        fewer = "" if n == some["n"] else f", n = {n}"
        detail = f"{ends} SD {percent(row['sd_between_seeds'], n)}{fewer}"
        cells.append(Cell(percent(row["mean"], n), detail))
    return tuple(cells)


def _differences(compared: pd.DataFrame, name: str) -> list[Table]:
    if compared.empty:
        return []
    columns = (
        Column("attack", numeric=False),
        Column("first model", numeric=False),
        Column("second model", numeric=False),
        Column("difference in points"),
        Column("p, Holm"),
        Column("p"),
        Column("n"),
    )
    notes = (
        "Differences of the means over seeds, intervals and p as for the means; Holm's correction "
        f"over all {len(compared)} comparisons of this table.",
    )
    rows = tuple(_difference(row) for row in records(compared))
    title = "Differences between models with several seeds, first minus second"
    return [Table(f"{name}-seed-differences", title, columns, rows, notes, beside=True)]


def _difference(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    n = int(row["n"])
    unit = ImageUnit(row["attack"], row["norm"] or None, row["epsilon"])
    return (
        Cell(unit.title),
        Cell(row["family_a"]),
        Cell(row["family_b"]),
        Cell(signed(row["difference"], n), f"[{signed(row['low'], n)}, {signed(row['high'], n)}]"),
        Cell(p_text(row["p_holm"]), best=row["p_holm"] < 0.05),
        Cell(p_text(row["p_value"])),
        Cell(str(n)),
    )

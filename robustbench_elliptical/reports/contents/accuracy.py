"""Accuracy under attack: the numbers, the comparisons by pairs, and their tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.blocks.outcomes import (
    ABSENT,
    FAILED,
    FOOLED,
    ROBUST,
    SKIPPED,
)
from robustbench_elliptical.reports.contents.findings import Marks
from robustbench_elliptical.reports.contents.pairing import pairs
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import percent, percent_range, records
from robustbench_elliptical.results import holm, mcnemar, paired_difference, wilson_interval

__all__ = [
    "LEVEL",
    "accuracy_frame",
    "accuracy_tables",
    "best_models",
    "comparison_frame",
    "threat",
    "units_at",
]

LEVEL = 0.05
"""Corrected p-value below which a difference counts."""

_PLACE = ("model", "attack", "norm", "epsilon")


def accuracy_frame(block: ImageBlock) -> pd.DataFrame:
    """Return one row a model and unit: counts, accuracy and its Wilson interval."""
    return pd.DataFrame(
        [
            _row(entry, unit)
            for unit in block.units()
            for entry in block.entries
            if unit in entry.codes
        ]
    )


def _row(entry: ImageEntry, unit: ImageUnit) -> dict[str, object]:
    codes = entry.codes[unit]
    counts = {
        name: int((codes == code).sum())
        for name, code in (
            ("robust", ROBUST),
            ("fooled", FOOLED),
            ("skipped", SKIPPED),
            ("failed", FAILED),
        )
    }
    samples = sum(counts.values())
    interval = wilson_interval(counts["robust"], samples)
    return {
        "model": entry.label,
        "attack": unit.attack,
        "norm": unit.norm or "",
        "epsilon": unit.epsilon,
        "n": samples,
        "accuracy": counts["robust"] / samples,
        "low": interval.low,
        "high": interval.high,
        **counts,
    }


_COMPARED = (
    "attack",
    "norm",
    "epsilon",
    "model_a",
    "model_b",
    "n",
    "only_a",
    "only_b",
    "difference",
    "low",
    "high",
    "p_value",
)


def comparison_frame(block: ImageBlock, against: str | None = None) -> pd.DataFrame:
    """Compare models under every attack, on the samples that both have; see `pairs`.

    Random noise is a control and left out. `p_holm` is corrected for all comparisons of the block.
    """
    rows = [
        row
        for unit in block.units()
        if not block.is_control(unit)
        for first, second in pairs(block.entries, against)
        if block.comparable(unit, first, second)
        for row in _compared(unit, first, second)
    ]
    frame = pd.DataFrame(rows, columns=list(_COMPARED))
    frame["p_holm"] = holm(frame["p_value"].to_numpy(float))
    return frame


def _compared(unit: ImageUnit, first: ImageEntry, second: ImageEntry) -> list[tuple[object, ...]]:
    one, other = first.codes[unit], second.codes[unit]
    shared = (one != ABSENT) & (other != ABSENT)
    if not shared.any():
        return []
    right = (one[shared] == ROBUST, other[shared] == ROBUST)
    test, effect = mcnemar(*right), paired_difference(*right)
    size = (unit.attack, unit.norm or "", unit.epsilon)
    labels = (first.label, second.label, len(right[0]))
    return [(*size, *labels, test.only_a, test.only_b, *effect, test.p_value)]


def best_models(frame: pd.DataFrame, comparisons: pd.DataFrame) -> "pd.Series[bool]":
    """Say for each row whether its model beats every other one under that attack.

    Beating is a corrected p-value below `LEVEL` in every comparison of the row's unit, and there
    must be one with every other model.
    """
    keys = ["attack", "norm", "epsilon"]
    won = comparisons[comparisons["p_holm"] < LEVEL]
    winners = won["model_a"].where(won["difference"] > 0, won["model_b"])
    wins = won.assign(model=winners).groupby([*keys, "model"]).size().rename("wins")
    joined = frame.merge(wins.reset_index(), on=[*keys, "model"], how="left")
    rivals = frame.groupby(keys)["model"].transform("size") - 1
    best: pd.Series[bool] = (rivals > 0) & (joined["wins"].fillna(0) == rivals)
    return best


def units_at(block: ImageBlock, norm: str, epsilon: float) -> list[ImageUnit]:
    """Return the units of one table: clean and everything of that norm and epsilon."""
    return [
        unit
        for unit in block.units()
        if unit.norm is None or (unit.norm, unit.epsilon) == (norm, epsilon)
    ]


def accuracy_tables(block: ImageBlock, frame: pd.DataFrame, marks: Marks, name: str) -> list[Table]:
    """Return a table of models by attacks for each norm and epsilon."""
    rows = {tuple(row[key] for key in _PLACE): row for row in records(frame)}
    tables: list[Table] = []
    for norm, epsilon in block.sizes() or [("", 0.0)]:
        units = units_at(block, norm, epsilon)
        columns = [Column("model", numeric=False), Column("n")]
        columns += [Column(_heading(unit, block)) for unit in units]
        size = ImageUnit("", norm, epsilon).size if norm else ""
        lines = [_line(entry, units, rows, marks) for entry in block.entries]
        tables.append(
            Table(
                f"{name}-accuracy" + (f"-{len(tables) + 1}" if len(block.sizes()) > 1 else ""),
                f"Accuracy in percent, {threat(norm, size)}",
                tuple(columns),
                tuple(line for line in lines if line),
                notes=_notes(units, len(block.entries)),
                primary=True,
            )
        )
    return tables


def threat(norm: str, size: str) -> str:
    """Return the words for a norm and an epsilon."""
    if not norm:
        return "without attack"
    shown = {"linf": "L-infinity", "l2": "L2"}.get(norm, norm)
    return f"clean and under attack within {shown} epsilon {size.removeprefix(norm + ' ')}"


def _heading(unit: ImageUnit, block: ImageBlock) -> str:
    return f"{unit.attack} (control)" if block.is_control(unit) else unit.attack


def _line(
    entry: ImageEntry,
    units: Sequence[ImageUnit],
    rows: Mapping[tuple[Any, ...], dict[str, Any]],
    marks: Marks,
) -> tuple[Cell, ...]:
    found = [rows.get((entry.label, unit.attack, unit.norm or "", unit.epsilon)) for unit in units]
    sizes = [int(row["n"]) for row in found if row is not None]
    if not sizes:
        return ()
    most = max(sizes)
    cells = [Cell(entry.label, marks=marks.get((entry.label, "", 0.0), ())), Cell(str(most))]
    for unit, row in zip(units, found, strict=True):
        cells.append(
            Cell("not run")
            if row is None
            else _accuracy(row, most, marks.get((entry.label, unit.attack, unit.epsilon), ()))
        )
    return tuple(cells)


def _accuracy(row: Mapping[str, Any], most: int, marks: tuple[str, ...]) -> Cell:
    samples = int(row["n"])
    fewer = "" if samples == most else f", n = {samples}"
    return Cell(
        percent(row["accuracy"], samples),
        percent_range(row["low"], row["high"], samples) + fewer,
        best=bool(row["best"]),
        marks=marks,
    )


def _notes(units: Sequence[ImageUnit], models: int) -> tuple[str, ...]:
    notes = [
        "Share of all n samples that are classified right, under an attack before and after it; "
        "Wilson 95 % intervals."
    ]
    if any(unit.attack == "worst-case" for unit in units):
        notes.append(
            "worst-case: a sample counts only if it resists every attack of the table; noise is a "
            "control and does not count."
        )
    if models > 1:
        notes.append(
            "Bold: better than every other model by the exact McNemar test, Holm-corrected p < "
            "0.05; where nothing is bold, the data do not tell which model is best."
        )
    return tuple(notes)

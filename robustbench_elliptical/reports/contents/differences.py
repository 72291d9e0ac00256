"""Differences between models, each with its effect, interval and corrected p-value."""

from typing import Any

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageUnit, TextUnit
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import number, p_text, records, signed, span

__all__ = ["difference_table", "ratio_table"]

_MOST = 45
"""Rows shown; what is left out stands in the CSV and JSON files."""


def difference_table(comparisons: pd.DataFrame, accuracy: pd.DataFrame, name: str) -> Table | None:
    """Return the table of the McNemar tests; none without a pair of models."""
    if comparisons.empty:
        return None
    shown, omitted = _shown(comparisons, accuracy, ["attack", "norm", "epsilon"], "worst-case")
    columns = (
        Column("attack", numeric=False),
        Column("first model", numeric=False),
        Column("second model", numeric=False),
        Column("difference in points"),
        Column("p, Holm"),
        Column("p"),
        Column("n"),
        Column("only first : only second right"),
    )
    notes = (
        "How many more of n shared samples the first model classifies right, in percentage points, "
        "with Tango's score interval (95 %); exact McNemar test on the samples where one model "
        f"only is right; Holm's correction over all {len(comparisons)} comparisons of this data.",
        *omitted,
    )
    rows = tuple(_difference(row) for row in records(shown))
    title = "Differences between models, first minus second"
    return Table(f"{name}-differences", title, columns, rows, notes, beside=True)


def _difference(row: dict[str, Any]) -> tuple[Cell, ...]:
    unit = ImageUnit(row["attack"], row["norm"] or None, row["epsilon"])
    samples = int(row["n"])
    low, high = (signed(row[name], samples) for name in ("low", "high"))
    return (
        Cell(unit.title),
        Cell(row["model_a"]),
        Cell(row["model_b"]),
        Cell(signed(row["difference"], samples), f"[{low}, {high}]"),
        Cell(p_text(row["p_holm"]), best=row["p_holm"] < 0.05),
        Cell(p_text(row["p_value"])),
        Cell(str(samples)),
        Cell(f"{row['only_a']} : {row['only_b']}"),
    )


def ratio_table(comparisons: pd.DataFrame, perplexity: pd.DataFrame, name: str) -> Table | None:
    """Return the table of the perplexity ratios; none without a pair of models."""
    if comparisons.empty:
        return None
    shown, omitted = _shown(comparisons, perplexity, ["attack", "rate"], "clean")
    columns = (
        Column("attack, rate", numeric=False),
        Column("first model", numeric=False),
        Column("second model", numeric=False),
        Column("ratio, perplexity per word"),
        Column("p, Holm"),
        Column("p"),
        Column("documents"),
    )
    notes = (
        "How many times higher the perplexity per word of the first model is than that of the "
        "second, on the documents that both scored; 95 % intervals and p by bootstrap over "
        "documents, drawn for both at once (2000 resamples, so p is 0.001 at least); Holm's "
        f"correction over all {len(comparisons)} comparisons of this data.",
        *omitted,
    )
    rows = tuple(_ratio(row) for row in records(shown))
    title = "Ratios between models, first over second"
    return Table(f"{name}-differences", title, columns, rows, notes, beside=True)


def _ratio(row: dict[str, Any]) -> tuple[Cell, ...]:
    tested = row["p_value"] == row["p_value"]
    other_way = "" if row["same_way"] else "measured in another way"
    return (
        Cell(TextUnit(row["attack"], row["rate"]).title),
        Cell(row["model_a"]),
        Cell(row["model_b"], other_way),
        Cell(number(row["ratio"], 3), span(row["low"], row["high"], 3)),
        Cell(p_text(row["p_holm"]) if tested else "no test", best=row["p_holm"] < 0.05),
        Cell(p_text(row["p_value"]) if tested else "no test"),
        Cell(str(row["documents"])),
    )


def _shown(
    comparisons: pd.DataFrame, frame: pd.DataFrame, keys: list[str], main: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the comparisons that fit a page: those with the best model, then of `main` only."""
    if len(comparisons) <= _MOST:
        return comparisons, ()
    value = "accuracy" if "accuracy" in frame else "word_perplexity"
    ordered = frame.sort_values(value, ascending=value != "accuracy", kind="stable")
    first = ordered.drop_duplicates(keys)[[*keys, "model"]]
    joined = comparisons.merge(first, on=keys, how="left")
    shown = joined[(joined["model_a"] == joined["model"]) | (joined["model_b"] == joined["model"])]
    what = "the best model with every other one"
    if len(shown) > _MOST:
        shown = shown[shown["attack"].isin([main, "clean"])]
        what += f", {main} only" if main == "clean" else f", {main} and clean only"
    return shown.head(_MOST).drop(columns="model"), (
        f"Shown: {what} ({min(len(shown), _MOST)} rows). All {len(comparisons)} stand in the CSV "
        "and JSON files.",
    )

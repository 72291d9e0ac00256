"""Published numbers that may stand beside ours. They never enter any statistics."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any

import pandas as pd

from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.specs import parse_epsilon
from robustbench_elliptical.reports.blocks import ImageBlock, ImageUnit, TextBlock, TextUnit
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import number, percent, records, span
from robustbench_elliptical.results import ModelRecord

__all__ = ["published_frame", "published_table"]

_FOLDER = "reports/published"
_ATTACKS = {
    "none": "clean",
    "clean": "clean",
    "fgm": "fgsm",
    "fgsm": "fgsm",
    "pgd": "pgd",
    "spsa": "spsa",
    "word-swap": "word-swap",
}
_EPSILON = re.compile(r"eps=([0-9./]+)")
_RATE = re.compile(r"([0-9.]+)\s*%")

_COLUMNS = (
    "model",
    "attack",
    "size",
    "ours",
    "low",
    "high",
    "n",
    "metric",
    "published",
    "published_model",
    "published_attack",
    "second_hand",
    "citation",
    "source",
    "protocol",
)


@cache
def _index() -> Mapping[str, Any]:
    return tomllib.loads((shipped(_FOLDER) / "index.toml").read_text(encoding="utf-8"))


@cache
def _numbers(file: str) -> pd.DataFrame:
    return pd.read_csv(shipped(_FOLDER) / file, dtype={"value": "float64"}, keep_default_na=False)


def published_frame(block: ImageBlock | TextBlock, measured: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers whose model, data, attack and size are those of a row of ours.

    Parameters
    ----------
    block
        The models.
    measured
        Our numbers, as `accuracy_frame` or `perplexity_frame` gives them.
    """
    rows = [
        {**ours, **theirs}
        for source in _index()["sources"]
        if source["data"] in block.name.lower()
        for entry in block.entries
        for theirs, attack, size in _theirs(source, entry.record)
        for ours in _ours(block, measured, entry.label, attack, size)
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _theirs(
    source: Mapping[str, Any], record: ModelRecord
) -> Iterator[tuple[dict[str, object], str, float]]:
    """Return the numbers of a source about a model, with attack and nominal size."""
    kinds = _index()["kinds"]
    for row in records(_numbers(source["file"])):
        kind = source["models"].get(row["model"])
        attack = _ATTACKS.get(str(row["attack"]).lower().split(" ")[0])
        metric = str(row["metric"])
        usable = metric == "test_ppl" or (metric.startswith("top1") and "(line" not in metric)
        if kind is None or attack is None or not usable or not _is_kind(record, kinds[kind]):
            continue
        size = _size(str(row["attack"]), source, attack)
        if size is None:
            continue
        yield (
            {
                "metric": metric,
                "published": row["value"],
                "published_model": row["model"],
                "published_attack": row["attack"],
                "second_hand": source["second_hand"],
                "citation": source["citation"],
                "source": row["source"],
                "protocol": source["protocol"],
            },
            attack,
            size,
        )


def _size(text: str, source: Mapping[str, Any], attack: str) -> float | None:
    """Return the nominal epsilon or rate of a published number, if it is known."""
    if attack == "clean":
        return 0.0
    if attack == "word-swap":
        rate = _RATE.search(text)
        return None if rate is None else float(rate[1]) / 100
    found = _EPSILON.search(text)
    stated = found[1] if found else source.get("epsilon")
    return None if stated is None else parse_epsilon(stated)


def _is_kind(record: ModelRecord, kind: Mapping[str, Any]) -> bool:
    facts = record.description
    architecture = facts.get("architecture") or {}
    names = [str(value) for value in architecture.values()]
    if any(fnmatch(name, pattern) for pattern in kind.get("library_names", ()) for name in names):
        return facts.get("attention") in (None, kind["attention"])
    settings = facts.get("attention_settings") or {}
    return (
        facts.get("task") == kind["task"]
        and facts.get("attention") == kind["attention"]
        and facts.get("num_classes") == kind.get("num_classes", facts.get("num_classes"))
        and kind.get("architecture", {}).items() <= architecture.items()
        and all(
            settings.get(key) == value for key, value in kind.get("attention_settings", {}).items()
        )
    )


def _ours(
    block: ImageBlock | TextBlock, measured: pd.DataFrame, model: str, attack: str, size: float
) -> Iterator[dict[str, object]]:
    images = isinstance(block, ImageBlock)
    for row in records(measured[measured["model"] == model]):
        unit = (
            ImageUnit(row["attack"], row["norm"] or None, row["epsilon"])
            if images
            else TextUnit(row["attack"], row["rate"])
        )
        given = row["epsilon"] if images else row["rate"]
        name = block.attacks[row["attack"]].name if row["attack"] in block.attacks else "clean"
        other = row["attack"] == "worst-case" or row.get("norm", "") not in ("", "linf")
        if other or name != attack or abs(given - size) > 1e-9:
            continue
        value = "accuracy" if images else "perplexity"
        yield {
            "model": model,
            "attack": row["attack"],
            "size": unit.title.removeprefix(unit.attack).strip(),
            "ours": row[value],
            "low": row["low"],
            "high": row["high"],
            "n": row["n"] if images else row["documents"],
        }


def published_table(frame: pd.DataFrame, name: str) -> Table | None:
    """Return the table of published numbers beside ours; none without one."""
    if frame.empty:
        return None
    columns = (
        Column("model", numeric=False),
        Column("attack", numeric=False),
        Column("ours"),
        Column("published"),
        Column("published as", numeric=False),
        Column("from", numeric=False),
        Column("protocol of the published number", numeric=False),
    )
    notes = (
        "Shown where model, data, attack and nominal size agree; the protocols differ, so the gap "
        "is no measure of anything. No published number enters a statistic of this report.",
        "Second-hand: read in a published summary of the paper, not in the paper itself.",
    )
    rows = tuple(_line(row) for row in records(frame))
    return Table(f"{name}-published", "Published numbers beside ours", columns, rows, notes)


def _line(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    if row["metric"] == "test_ppl":
        ours = Cell(number(row["ours"]), f"{span(row['low'], row['high'])}, {row['n']} documents")
    else:
        n = int(row["n"])
        ends = f"[{percent(row['low'], n)}, {percent(row['high'], n)}]"
        ours = Cell(percent(row["ours"], n), f"{ends}, n = {n}")
    return (
        Cell(row["model"]),
        Cell(f"{row['attack']} {row['size']}".strip()),
        ours,
        Cell(f"{row['published']:.2f}", "second-hand" if row["second_hand"] else ""),
        Cell(f"{row['published_model']}, {row['published_attack']}", row["metric"]),
        Cell(row["citation"], row["source"]),
        Cell(row["protocol"]),
    )

"""What the attacks cost: passes and seconds per sample, beside what they achieved."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, ImageUnit, TextBlock, TextUnit
from robustbench_elliptical.reports.contents.accuracy import threat, units_at
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import count, records
from robustbench_elliptical.reports.tables import format_rate

__all__ = ["cost_frame", "cost_tables"]


class _Cost(NamedTuple):
    model: str
    unit: ImageUnit | TextUnit
    samples: int
    forwards: int
    backwards: int
    seconds: float


def cost_frame(block: ImageBlock | TextBlock) -> pd.DataFrame:
    """Return one row a model and unit: forwards, backwards and seconds, in all and per sample."""
    return pd.DataFrame([_row(cost) for cost in _costs(block)])


def _costs(block: ImageBlock | TextBlock) -> Iterator[_Cost]:
    if isinstance(block, ImageBlock):
        for image in block.units():
            for entry in block.entries:
                if image in entry.costs:
                    yield _Cost(entry.label, image, *entry.costs[image])
        return
    for text in block.units():
        for reader in block.entries:
            if text in reader.summaries:
                found = reader.summaries[text]
                passes = (found.forwards, found.backwards, found.seconds)
                yield _Cost(reader.label, text, found.documents, *passes)


def _row(cost: _Cost) -> dict[str, object]:
    unit = cost.unit
    size: dict[str, object] = (
        {"norm": unit.norm or "", "epsilon": unit.epsilon}
        if isinstance(unit, ImageUnit)
        else {"rate": unit.rate}
    )
    return {
        "model": cost.model,
        "attack": unit.attack,
        **size,
        "n": cost.samples,
        "forwards": cost.forwards,
        "backwards": cost.backwards,
        "seconds": cost.seconds,
        "forwards_per_sample": cost.forwards / cost.samples,
        "backwards_per_sample": cost.backwards / cost.samples,
        "seconds_per_sample": cost.seconds / cost.samples,
    }


class _Part(NamedTuple):
    """One table."""

    title: str
    units: list[ImageUnit] | list[TextUnit]
    headings: list[str]


def cost_tables(block: ImageBlock | TextBlock, frame: pd.DataFrame, name: str) -> list[Table]:
    """Return tables of models by attacks: forward + backward passes and seconds per sample."""
    images = isinstance(block, ImageBlock)
    parts = _image_parts(block) if isinstance(block, ImageBlock) else _text_parts(block)
    what, one = ("sample", "an image") if images else ("document", "a window")
    note = (
        f"Forward + backward passes per {what} (one {one}), below them seconds per {what}, "
        "verification included; sizes that an attack serves at once pay once. Seconds depend on "
        "the machine: see the provenance."
    )
    keys = ("model", "attack", "norm", "epsilon") if images else ("model", "attack", "rate")
    rows = {tuple(row[key] for key in keys): row for row in records(frame)}
    tables = []
    for place, part in enumerate(parts, start=1):
        lines = tuple(
            (Cell(entry.label), *(_cell(rows.get(_key(entry.label, unit))) for unit in part.units))
            for entry in block.entries
        )
        columns = (Column("model", numeric=False), *(Column(label) for label in part.headings))
        suffix = f"-{place}" if len(parts) > 1 else ""
        tables.append(Table(f"{name}-cost{suffix}", part.title, columns, lines, (note,)))
    return tables


def _image_parts(block: ImageBlock) -> list[_Part]:
    parts = []
    for norm, epsilon in block.sizes() or [("", 0.0)]:
        units = units_at(block, norm, epsilon)
        title = f"Cost, {threat(norm, ImageUnit('', norm, epsilon).size)}"
        parts.append(_Part(title, units, [unit.attack for unit in units]))
    return parts


def _text_parts(block: TextBlock) -> list[_Part]:
    parts = []
    for attack in list(block.attacks) or [""]:
        units = [unit for unit in block.units() if unit.attack in ("clean", attack)]
        headings = [format_rate(unit.rate) if unit.rate else unit.attack for unit in units]
        parts.append(_Part(f"Cost under {attack}" if attack else "Cost", units, headings))
    return parts


def _key(label: str, unit: ImageUnit | TextUnit) -> tuple[object, ...]:
    if isinstance(unit, ImageUnit):
        return label, unit.attack, unit.norm or "", unit.epsilon
    return label, unit.attack, unit.rate


def _cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell("not run")
    passes = f"{count(row['forwards_per_sample'])} + {count(row['backwards_per_sample'])}"
    return Cell(passes, f"({row['seconds_per_sample']:.2g} s)")

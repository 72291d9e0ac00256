"""The table of the inside of the models, at the attack that is hardest for them."""

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, ImageUnit
from robustbench_elliptical.reports.blocks.images import CLEAN
from robustbench_elliptical.reports.contents.inside import MOST_MODELS, joint_strongest, rows_of
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import number, span

__all__ = ["inside_table"]

_DIGITS = 3

_NOTES = (
    "Means over n images that the model classifies right before the attack, with Student's 95 % "
    "intervals.",
    "Token similarity: mean cosine of two different tokens after the last block; near 1 the tokens "
    "have collapsed to one.",
    "Attention-IoU (arXiv 2503.19846): overlap of the class token's attention with that for the "
    "clean image, last block, mean of the heads; 1 is unchanged.",
    "Metric change: absolute change of the metric of Elliptical Attention from that of the clean "
    "image, mean of blocks, heads and components; its interval is the mean of those of the heads, "
    "which is never too narrow.",
)

_LEFT_OUT = (
    f"Figures of one model alone are drawn for the first {MOST_MODELS} models; the numbers of all "
    "stand in the CSV and JSON files."
)


def inside_table(block: ImageBlock, frames: dict[str, pd.DataFrame], name: str) -> Table | None:
    """Return a row for each model that was looked into; none where no model was."""
    unit = joint_strongest(block)
    clean = ImageUnit(CLEAN, None, 0.0)
    rows = []
    for entry in block.entries:
        records = [entry.internals.get(each) for each in (clean, unit) if each is not None]
        sizes = [record.samples for record in records if record is not None]
        if not sizes:
            continue
        cells = [_last(frames["token-similarity"], entry.label, clean, sizes[-1])]
        if unit is not None:
            cells += [
                _last(frames["token-similarity"], entry.label, unit, sizes[-1]),
                _last(frames["attention-iou"], entry.label, unit, sizes[-1]),
                _mean(frames["metric-change"], entry.label, unit),
            ]
        rows.append((Cell(entry.label), Cell(str(sizes[-1])), *cells))
    if not rows:
        return None
    under = "" if unit is None else f" and under {unit.title}"
    notes = _NOTES[:2] if unit is None else _NOTES
    if len(block.entries) > MOST_MODELS:
        notes = (*notes, _LEFT_OUT)
    columns = _columns(unit)
    return Table(f"{name}-inside", f"Inside the models, clean{under}", columns, tuple(rows), notes)


def _columns(unit: ImageUnit | None) -> tuple[Column, ...]:
    first = (Column("model", numeric=False), Column("n"), Column("token similarity, clean"))
    if unit is None:
        return first
    attacked = ("token similarity, attacked", "Attention-IoU", "metric change")
    return (*first, *(Column(label) for label in attacked))


def _last(frame: pd.DataFrame, model: str, unit: ImageUnit, usual: int) -> Cell:
    """Return the value after the last block; the rows are in the order of the blocks."""
    own = rows_of(frame, model, unit)
    if own.empty:
        return Cell("none")
    samples = int(own["n"].iloc[-1])
    fewer = "" if samples == usual else f", n = {samples}"
    return _cell(own.iloc[[-1]], fewer)


def _mean(frame: pd.DataFrame, model: str, unit: ImageUnit) -> Cell:
    own = rows_of(frame, model, unit)
    return Cell("none") if own.empty else _cell(own)


def _cell(rows: pd.DataFrame, fewer: str = "") -> Cell:
    mean, low, high = (float(rows[end].mean()) for end in ("mean", "low", "high"))
    return Cell(number(mean, _DIGITS), span(low, high, _DIGITS) + fewer)

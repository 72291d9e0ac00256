"""Images before and after an attack, with what the model takes them for."""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.figure import Figure as Drawing

from robustbench_elliptical.reports.blocks import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.blocks.pictures import Picture, load_pictures
from robustbench_elliptical.reports.contents.inside import strongest
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.figures.pixels import (
    Pixels,
    amplification,
    amplified,
    overlay,
    upright,
)
from robustbench_elliptical.reports.figures.style import WIDTH, fitted

__all__ = ["gallery_figures"]

_MOST = 4
"""Images shown."""

_SIZES = (6.5, 5.8)
"""Points of the headings and of the words at the images."""

_LINE = 0.093
"""Inches of a line of words."""

_GAP = 0.05
"""Inches between images."""


_MARKS = ("\u2717", "\u2713")
"""Of a wrong class and a right one."""


_MAPS = (
    " Orange: attention of the class token to the patches in the last block, mean of the heads; "
    "full at the largest value of the two maps of an image."
)


class _Row(NamedTuple):
    """One image."""

    truth: str
    panels: tuple[Pixels, ...]
    captions: tuple[str, ...]


def gallery_figures(
    block: ImageBlock, entries: Sequence[ImageEntry], names: Sequence[str]
) -> list[Figure | None]:
    """Return for each model the figure of its first pictures under its strongest attack.

    Parameters
    ----------
    block, entries
        The models.
    names
        Of the figures.

    Raises
    ------
    UsageError
        If the pictures can't be read.
    """
    units = [strongest(entry, entry.pictures, block.real) for entry in entries]
    chosen = [
        [] if unit is None else entry.pictures[unit][:_MOST]
        for entry, unit in zip(entries, units, strict=True)
    ]
    loaded = iter(load_pictures([picture for group in chosen for picture in group]))
    figures: list[Figure | None] = []
    for entry, unit, group, name in zip(entries, units, chosen, names, strict=True):
        pictures = list(islice(loaded, len(group)))
        figures.append(None if unit is None else _gallery(entry, unit, pictures, name))
    return figures


def _gallery(entry: ImageEntry, unit: ImageUnit, pictures: Sequence[Picture], name: str) -> Figure:
    factor = amplification(pictures)
    names = entry.data.class_names or []
    attention = any(each.clean_attention is not None for each in pictures)
    rows = [_row(each, factor, names, attention=attention) for each in pictures]
    headings = ["clean", "attacked", f"difference, \u00d7{factor}"]
    headings += ["attention, clean", "attention, attacked"] if attention else []
    kept = len(entry.pictures[unit])
    return Figure(
        name,
        f"{entry.label} under {unit.title}: the first {len(rows)} of {kept} images kept; "
        f"difference times {factor} around grey",
        "Below an image the class predicted, with a tick if it is the true one. "
        + "; ".join(_words(each, names) for each in pictures)
        + "."
        + (_MAPS if attention else ""),
        partial(_draw, rows, headings),
    )


def _class(label: int, names: Sequence[str]) -> str:
    return names[label] if 0 <= label < len(names) else f"class {label}"


def _words(picture: Picture, names: Sequence[str]) -> str:
    record = picture.record
    clean, attacked = (_class(each, names) for each in (record.clean_prediction, record.prediction))
    truth = _class(record.label, names)
    return f"{record.sample_id}, {truth}: {clean} when clean, {attacked} under attack"


def _row(picture: Picture, factor: int, names: Sequence[str], *, attention: bool) -> _Row:
    record = picture.record
    panels = [upright(picture.clean), upright(picture.attacked), amplified(picture, factor)]
    if attention:
        panels += _maps(picture)
    captions = [
        f"{_MARKS[label == record.label]} {_class(label, names)}"
        for label in (record.clean_prediction, record.prediction)
    ]
    return _Row(f"true: {_class(record.label, names)}", tuple(panels), tuple(captions))


def _maps(picture: Picture) -> list[Pixels]:
    clean, attacked = picture.clean_attention, picture.attacked_attention
    if clean is None or attacked is None:
        return []
    largest = float(max(clean.max(), attacked.max()))
    return [overlay(picture.clean, clean, largest), overlay(picture.attacked, attacked, largest)]


def _draw(rows: Sequence[_Row], headings: Sequence[str]) -> Drawing:
    side = (WIDTH - _GAP * (len(headings) - 1)) / len(headings)
    height, width = rows[0].panels[0].shape[:2]
    tall = side * float(np.clip(height / width, 0.4, 2.0))
    words = [[fitted(text, 72 * side, _SIZES[1]) for text in row.captions] for row in rows]
    below = [max(text.count("\n") + 1 for text in row) * _LINE for row in words]
    head = 2 * _LINE + 0.08
    total = head + sum(_LINE + 0.03 + tall + lines + 0.07 for lines in below)
    page = _Page(Drawing(figsize=(WIDTH, total)), total)
    for column, heading in enumerate(headings):
        text = fitted(heading, 72 * side, _SIZES[0])
        page.write(column * (side + _GAP) + side / 2, head - 0.04, text, _SIZES[0], "bottom")
    top = head
    for row, captions, lines in zip(rows, words, below, strict=True):
        top += _LINE + 0.03
        truth = fitted(row.truth, 72 * (WIDTH - 0.02), _SIZES[1], lines=1)
        page.write(0.01, top - 0.03, truth, _SIZES[1], "bottom", "left")
        for column, panel in enumerate(row.panels):
            page.show(column * (side + _GAP), top, (side, tall), panel)
        top += tall
        for column, caption in enumerate(captions):
            across = column * (side + _GAP) + side / 2
            page.write(across, top + 0.02, caption, _SIZES[1], "top")
        top += lines + 0.07
    return page.drawing


class _Page(NamedTuple):
    """A drawing measured in inches from its top left corner."""

    drawing: Drawing
    height: float

    def write(
        self,
        left: float,
        top: float,
        text: str,
        size: float,
        vertical: Literal["bottom", "top"],
        horizontal: Literal["left", "center"] = "center",
    ) -> None:
        """Write a text."""
        place = (left / WIDTH, 1 - top / self.height)
        self.drawing.text(*place, text, fontsize=size, va=vertical, ha=horizontal)

    def show(self, left: float, top: float, size: tuple[float, float], pixels: Pixels) -> None:
        """Show an image."""
        width, height = size
        box = (left, self.height - top - height, width, height)
        scale = (WIDTH, self.height, WIDTH, self.height)
        axes = self.drawing.add_axes(tuple(np.divide(box, scale)))
        axes.imshow(pixels, interpolation="none")
        axes.set_axis_off()

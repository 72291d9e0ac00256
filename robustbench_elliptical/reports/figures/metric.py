"""The metric of Elliptical Attention, block by block and head by head."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from robustbench_elliptical.reports.blocks import ImageUnit
from robustbench_elliptical.reports.blocks.images import CLEAN
from robustbench_elliptical.reports.contents.inside import rows_of, sizes
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.contents.wording import number
from robustbench_elliptical.reports.figures.style import WIDTH, look

__all__ = ["by_head", "metric_figure"]

Values = npt.NDArray[np.float64]

_ROW = 0.11
"""Inches of a head, unless there are many."""

_LOWEST, _TALLEST = 1.1, 4.2
"""Inches of all heads together, at least and at most."""


class _Head(NamedTuple):
    """A head and its components, largest first."""

    block: int
    head: int
    components: Values


def metric_figure(frame: pd.DataFrame, model: str, name: str) -> Figure | None:
    """Return the metric of a model, clean, if it has one; `frame` is that of all models."""
    rows = rows_of(frame, model, ImageUnit(CLEAN, None, 0.0))
    return None if rows.empty else _metric(rows, model, name)


def by_head(rows: pd.DataFrame) -> Iterator[tuple[tuple[int, int], pd.DataFrame]]:
    """Yield the rows of each head with its block and head."""
    for block, own in rows.groupby("block"):
        for head, mine in own.groupby("head"):
            yield (int(str(block)), int(str(head))), mine


def _metric(rows: pd.DataFrame, model: str, name: str) -> Figure:
    heads = [
        _Head(*place, np.sort(own["metric"].to_numpy(float))[::-1]) for place, own in by_head(rows)
    ]
    numbers = "; ".join(
        f"block {each.block} head {each.head}: {number(each.components.mean(), 3)}, "
        f"{number(each.components.std(), 3)}"
        for each in heads
    )
    return Figure(
        name,
        f"Metric of {model} by block and head, clean, {sizes(rows)}",
        "Each row of the map is a head, its components from the largest to the smallest; beside it "
        "their mean and standard deviation. Blocks and heads are counted from 0. Mean and standard "
        f"deviation, {numbers}.",
        partial(_draw_metric, heads),
    )


def _draw_metric(heads: Sequence[_Head]) -> Drawing:
    places, labels = _places(heads)
    rows = int(places[-1]) + 1
    values = np.full((rows, max(len(each.components) for each in heads)), np.nan)
    for place, each in zip(places, heads, strict=True):
        values[place, : len(each.components)] = each.components
    height = float(np.clip(_ROW * rows, _LOWEST, _TALLEST))
    made = Drawing(figsize=(WIDTH, height + 0.95), layout="constrained")
    chart, side = made.subplots(1, 2, sharey=True, width_ratios=(3.2, 1))
    image = chart.imshow(
        np.ma.masked_invalid(values), aspect="auto", interpolation="none", cmap="viridis",
        vmin=0.0, vmax=float(np.nanmax(values)),
    )  # fmt: skip
    chart.set_xlabel("components of the head, sorted")
    chart.set_ylabel("block, a row a head")
    chart.set_yticks(list(labels), [str(block) for block in labels.values()])
    chart.tick_params(length=0)
    chart.set_xticks([])
    chart.grid(visible=False)
    chart.spines[:].set_visible(False)
    _draw_means(side, heads, places)
    bar = made.colorbar(image, ax=chart, location="bottom", fraction=0.05, aspect=30, pad=0.02)
    bar.set_label("metric, mean over images")
    bar.outline.set_visible(False)
    return made


def _draw_means(axes: Axes, heads: Sequence[_Head], places: Sequence[int]) -> None:
    means = np.array([each.components.mean() for each in heads])
    spreads = np.array([each.components.std() for each in heads])
    colour, _, _ = look(0)
    axes.hlines(places, means - spreads, means + spreads, color=colour, linewidth=0.7)
    axes.plot(means, places, color=colour, marker="o", markersize=2.2, linestyle="none")
    axes.set_xlabel("mean \u00b1 s.d.")
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.tick_params(axis="y", left=False, labelleft=False)
    axes.grid(visible=False, axis="y")


def _places(heads: Sequence[_Head]) -> tuple[list[int], dict[float, int]]:
    """Return the row of each head, with a gap between blocks, and the block at each centre."""
    blocks = sorted({each.block for each in heads})
    places = [row + blocks.index(each.block) for row, each in enumerate(heads)]
    labels = {}
    for block in blocks:
        own = [place for place, each in zip(places, heads, strict=True) if each.block == block]
        labels[(own[0] + own[-1]) / 2] = block
    return places, labels

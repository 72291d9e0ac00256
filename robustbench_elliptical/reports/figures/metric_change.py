"""How attacks move the metric of Elliptical Attention: a panel a block, a line a head."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from robustbench_elliptical.reports.blocks import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.contents.inside import rows_of, sizes, strongest
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.contents.wording import number
from robustbench_elliptical.reports.figures.metric import by_head
from robustbench_elliptical.reports.figures.style import WIDTH, look

__all__ = ["metric_change_figure"]

Values = npt.NDArray[np.float64]

_COLUMNS = 4
"""Panels side by side."""

_HEADS = 6
"""Heads in a line of the legend."""


class _Track(NamedTuple):
    """How far a head's metric moves as epsilon grows."""

    block: int
    head: int
    sizes: Values
    mean: Values
    low: Values
    high: Values


def metric_change_figure(
    block: ImageBlock, entry: ImageEntry, frame: pd.DataFrame, name: str
) -> Figure | None:
    """Return the change of a model's metric under its strongest attack, if it has a metric.

    Parameters
    ----------
    block, entry
        The model.
    frame
        The block's frame `metric-change`.
    name
        Of the figure.
    """
    own = frame[frame["model"] == entry.label]
    units = [unit for unit in entry.internals if not rows_of(own, entry.label, unit).empty]
    unit = strongest(entry, units, block.real)
    if unit is None:
        return None
    here = (own["attack"] == unit.attack) & (own["norm"] == unit.norm)
    return _change(own[here], unit, entry.label, name)


def _change(rows: pd.DataFrame, unit: ImageUnit, model: str, name: str) -> Figure:
    scale = 255.0 if unit.norm == "linf" else 1.0
    tracks = []
    for place, own in by_head(rows):
        columns = own.sort_values("epsilon")[["epsilon", "mean", "low", "high"]].to_numpy(float)
        tracks.append(_Track(*place, *(columns * [scale, 1, 1, 1]).T))
    numbers = "; ".join(
        f"block {each.block} head {each.head}: "
        + ", ".join(
            f"{number(mean, 4)} at {size:.4g}"
            for size, mean in zip(each.sizes, each.mean, strict=True)
        )
        for each in tracks
    )
    across = "epsilon, 1/255 of the pixel range" if unit.norm == "linf" else f"{unit.norm} epsilon"
    return Figure(
        name,
        f"Change of the metric of {model} by block and head under {unit.attack}, "
        f"{sizes(rows)}, with 95 % intervals",
        "Absolute change from the metric of the same clean image, mean over components; "
        f"blocks and heads are counted from 0; {across}. {numbers}.",
        partial(_draw_change, tracks, across),
    )


def _draw_change(tracks: Sequence[_Track], across: str) -> Drawing:
    blocks = sorted({each.block for each in tracks})
    heads = sorted({each.head for each in tracks})
    columns = min(_COLUMNS, len(blocks))
    rows, legend = -(-len(blocks) // columns), -(-len(heads) // _HEADS)
    height = 0.45 + 0.95 * rows + 0.145 * legend
    made = Drawing(figsize=(WIDTH, height), layout="constrained")
    panels = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, block in zip(panels, blocks, strict=False):
        for each in tracks:
            if each.block == block:
                _draw_track(panel, each)
        panel.set_title(f"block {block}", fontsize=6.5, pad=2)
    _finish(list(panels), len(blocks), columns, tracks)
    made.supxlabel(across, fontsize=7)
    made.supylabel("change of the metric", fontsize=7)
    handles = [
        Line2D([], [], color=look(head).colour, marker=look(head).marker, linewidth=0.8)
        for head in heads
    ]
    made.legend(
        handles, [f"head {head}" for head in heads], loc="outside upper left", ncols=_HEADS,
        columnspacing=0.8, handletextpad=0.3, handlelength=1.2, borderpad=0.0, borderaxespad=0.2,
    )  # fmt: skip
    return made


def _finish(panels: Sequence[Axes], used: int, columns: int, tracks: Sequence[_Track]) -> None:
    """Set the scale that the panels share, and take away those that are left over."""
    highest = max(float(np.max([each.high, each.mean])) for each in tracks)
    panels[0].set_ylim(0, 1.05 * highest if highest > 0 else 1.0)
    panels[0].yaxis.set_major_locator(MaxNLocator(3))
    sizes = sorted({size for each in tracks for size in each.sizes})
    if len(sizes) <= 4:
        panels[0].set_xticks([0, *sizes], [f"{size:.3g}" for size in (0, *sizes)])
    else:
        panels[0].xaxis.set_major_locator(MaxNLocator(3))
    for place, panel in enumerate(panels):
        if place >= used:
            panel.remove()
        elif place + columns >= used:
            panel.tick_params(axis="x", labelbottom=True)


def _draw_track(axes: Axes, track: _Track) -> None:
    """Draw a head from the origin: without an attack nothing changes."""
    colour, marker, _ = look(track.head)
    sizes, means = np.append(0.0, track.sizes), np.append(0.0, track.mean)
    axes.plot(sizes, means, color=colour, linewidth=0.8)
    axes.plot(
        track.sizes, track.mean, color=colour, marker=marker, markersize=2.4, linestyle="none"
    )
    axes.vlines(track.sizes, track.low, track.high, color=colour, linewidth=0.6)

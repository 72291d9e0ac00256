"""A value against the size of an attack, one line a model, with its interval."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from robustbench_elliptical.reports.figures.style import drawable, figure, legend_below, look

__all__ = ["Curve", "draw_curves"]

Values = npt.NDArray[np.float64]

_BANDS = 4
"""Models up to which intervals are drawn as bands; more are drawn as bars."""


class Curve(NamedTuple):
    """One model."""

    label: str
    place: int
    """Among the models of the block: the same look in every figure."""
    sizes: Values
    heights: Values
    low: Values
    high: Values


def draw_curves(curves: Sequence[Curve], across: str, up: str) -> tuple[Figure, Axes]:
    """Draw the curves with labelled axes and a legend."""
    made, axes = figure(len(curves))
    handles = [_draw(axes, curve, bands=len(curves) <= _BANDS) for curve in curves]
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    sizes = sorted({size for curve in curves for size in curve.sizes})
    if len(sizes) <= 7:
        axes.set_xticks(sizes, [f"{size:.4g}" for size in sizes])
    legend_below(made, handles, [drawable(curve.label) for curve in curves])
    return made, axes


def _draw(axes: Axes, curve: Curve, *, bands: bool) -> Line2D:
    colour, marker, line = look(curve.place)
    (handle,) = axes.plot(
        curve.sizes, curve.heights, color=colour, marker=marker, linestyle=line, clip_on=False
    )
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    if bands:
        axes.fill_between(
            curve.sizes, curve.low, curve.high, where=known, color=colour, alpha=0.18, linewidth=0
        )
    else:
        axes.vlines(
            curve.sizes[known], curve.low[known], curve.high[known], color=colour, linewidth=0.7
        )
    return handle

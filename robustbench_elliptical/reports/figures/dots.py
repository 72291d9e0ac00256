"""Many models in one figure: a row for each, a point for each size of the attack."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from robustbench_elliptical.reports.figures.curves import Curve
from robustbench_elliptical.reports.figures.style import WIDTH, drawable, legend_below, look

__all__ = ["MOST_CURVES", "draw_dots"]

MOST_CURVES = 8
"""So many curves can be told apart in one figure."""

_ROW = 0.14
_NAME_SIZE = 5.2


def draw_dots(curves: Sequence[Curve], size: str, across: str) -> Figure:
    """Return a figure with a row for each curve, in their order from the top.

    Parameters
    ----------
    curves
        Heights of the models by size.
    size, across
        What a size and a height are, with their units.
    """
    sizes = sorted({float(each) for curve in curves for each in curve.sizes})
    height = _ROW * len(curves) + 0.16 * len(sizes) + 0.45
    made = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = made.add_subplot()
    for place, each in enumerate(sizes):
        rows, columns = zip(*_points(curves, each), strict=True)
        middle, low, high = np.array(columns).T
        shown = look(place)
        axes.hlines(rows, low, high, color=shown.colour, linewidth=0.8)
        axes.plot(middle, rows, shown.marker, color=shown.colour, markersize=2.8)
    names = [drawable(curve.label) for curve in curves]
    axes.set_yticks(range(len(curves)), names, fontsize=_NAME_SIZE)
    axes.set_ylim(len(curves) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(across)
    handles = [
        Line2D([], [], color=look(place).colour, marker=look(place).marker, linewidth=0.8)
        for place in range(len(sizes))
    ]
    legend_below(made, handles, [f"{size}: {each:.4g}" for each in sizes])
    return made


def _points(curves: Sequence[Curve], size: float) -> list[tuple[int, tuple[float, float, float]]]:
    """Return row, middle and interval of every curve that has this size."""
    return [
        (row, (float(curve.heights[at]), float(curve.low[at]), float(curve.high[at])))
        for row, curve in enumerate(curves)
        for at in np.flatnonzero(curve.sizes == size)
    ]

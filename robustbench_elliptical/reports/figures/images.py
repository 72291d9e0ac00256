"""Figures of accuracy: against epsilon, and against what the attack costs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from robustbench_elliptical.reports.blocks import ImageBlock, ImageUnit
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.contents.wording import records, slug
from robustbench_elliptical.reports.figures.curves import Curve, draw_curves
from robustbench_elliptical.reports.figures.dots import MOST_CURVES, draw_dots
from robustbench_elliptical.reports.figures.style import (
    INK,
    Look,
    drawable,
    figure,
    legend_below,
    look,
    plain_log_ticks,
)

__all__ = ["image_figures"]

_NORMS = {"linf": "L-infinity", "l2": "L2"}
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")


def image_figures(
    block: ImageBlock, measured: pd.DataFrame, costs: pd.DataFrame, name: str
) -> Iterator[Figure]:
    """Yield the figures of a block.

    Parameters
    ----------
    block
        The models.
    measured, costs
        Its frames of accuracies and costs.
    name
        What the names of the figures begin with.
    """
    for norm in dict.fromkeys(norm for norm, _ in block.sizes()):
        names = ["worst-case", *block.real]
        for attack in names:
            rows = measured[(measured["norm"] == norm) & (measured["attack"] == attack)]
            if not rows.empty:
                yield _curve(block, measured, rows, (norm, attack), name)
    sizes = block.sizes()
    chosen = sizes if len(sizes) <= 3 else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    for place, (norm, epsilon) in enumerate(chosen, start=1):
        here = (measured["norm"] == norm) & (measured["epsilon"] == epsilon)
        rows = measured[here & measured["attack"].isin([*block.real, "worst-case"])]
        keys = ["model", "attack", "norm", "epsilon"]
        joined = rows.merge(costs.drop(columns="n"), on=keys)
        joined["passes"] = joined["forwards_per_sample"] + joined["backwards_per_sample"]
        joined = joined[joined["passes"] > 0]
        if not joined.empty:
            suffix = f"-{place}" if len(chosen) > 1 else ""
            size = ImageUnit("", norm, epsilon).size
            yield _cost(block, joined, f"{name}-accuracy-cost{suffix}", size)


def _curve(
    block: ImageBlock,
    measured: pd.DataFrame,
    rows: pd.DataFrame,
    what: tuple[str, str],
    name: str,
) -> Figure:
    norm, attack = what
    clean = measured[(measured["attack"] == "clean") & measured["model"].isin(rows["model"])]
    scale = 255.0 if norm == "linf" else 1.0
    curves = []
    for place, entry in enumerate(block.entries):
        own = pd.concat([clean, rows])
        own = own[own["model"] == entry.label].sort_values("epsilon")
        if (own["attack"] == attack).any():
            values = own[["epsilon", "accuracy", "low", "high"]].to_numpy(float)
            columns = (values * [scale, 100, 100, 100]).T
            curves.append(Curve(entry.label, place, *columns))
    unit = "in 1/255 of the pixel range" if norm == "linf" else "in units of the pixel range"
    shown = _NORMS.get(norm, norm)
    title = f"Accuracy under {attack} against {shown} epsilon, with 95 % intervals"
    numbers = "; ".join(
        f"{curve.label}: "
        + ", ".join(
            f"{value:.1f} % at {size:.4g}"
            for size, value in zip(curve.sizes, curve.heights, strict=True)
        )
        for curve in curves
    )
    anchor = f"{name}-accuracy-{slug(norm)}-{slug(attack)}"
    draw = partial(_draw_curve, curves, f"{shown} epsilon, {unit}")
    return Figure(anchor, title, f"Epsilon {unit}. {numbers}.", draw)


def _draw_curve(curves: Sequence[Curve], across: str) -> Drawing:
    if len(curves) > MOST_CURVES:
        return draw_dots(curves, across, "accuracy, % of n")
    made, axes = draw_curves(curves, across, "accuracy, % of n")
    axes.set_ylim(0, min(100.0, 5 + max(curve.high.max() for curve in curves)))
    return made


def _cost(block: ImageBlock, rows: pd.DataFrame, name: str, size: str) -> Figure:
    places = {
        entry.label: place
        for place, entry in enumerate(block.entries)
        if entry.label in set(rows["model"])
    }
    description = "; ".join(
        f"{row['model']} under {row['attack']}: {100 * row['accuracy']:.1f} % at "
        f"{row['passes']:.0f} passes"
        for row in records(rows)
    )
    title = f"Accuracy against the cost of the attack, epsilon {size}, with 95 % intervals"
    return Figure(name, title, f"{description}.", partial(_draw_cost, rows, places))


def _draw_cost(rows: pd.DataFrame, places: Mapping[str, int]) -> Drawing:
    attacks = list(dict.fromkeys(rows["attack"]))
    made, axes = figure(len(places) + len(attacks))
    for label, place in places.items():
        own = rows[rows["model"] == label].sort_values(["passes", "accuracy"])
        _trace(axes, own, look(place), attacks)
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    axes.set_ylim(0, min(100.0, 5 + 100 * float(rows["high"].max())))
    axes.set_xlabel("forward + backward passes per sample")
    axes.set_ylabel("accuracy, % of n")
    handles = [_line(look(place)) for place in places.values()]
    handles += [_marker(place) for place in range(len(attacks))]
    legend_below(made, handles, [drawable(text) for text in (*places, *attacks)])
    return made


def _trace(axes: Axes, rows: pd.DataFrame, model: Look, attacks: list[str]) -> None:
    """Draw one model: a point for each attack, joined by its line."""
    columns = rows[["passes", "accuracy", "low", "high"]].to_numpy(float) * [1, 100, 100, 100]
    passes, accuracy, low, high = columns.T
    axes.plot(passes, accuracy, color=model.colour, linestyle=model.line, linewidth=0.7)
    axes.vlines(passes, low, high, color=model.colour, linewidth=0.7)
    for attack, across, up in zip(rows["attack"], passes, accuracy, strict=True):
        marker = _MARKERS[attacks.index(attack) % len(_MARKERS)]
        axes.plot(across, up, color=model.colour, marker=marker, markersize=4.2, clip_on=False)


def _line(model: Look) -> Line2D:
    return Line2D([], [], color=model.colour, linestyle=model.line, linewidth=1.4)


def _marker(place: int) -> Line2D:
    return Line2D([], [], color=INK, marker=_MARKERS[place % len(_MARKERS)], linestyle="none")

"""What the blocks do to an image, one line a model: from block to block, clean and attacked."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from robustbench_elliptical.reports.blocks import ImageBlock, ImageUnit
from robustbench_elliptical.reports.blocks.images import CLEAN
from robustbench_elliptical.reports.contents.inside import rows_at, sizes
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.figures.curves import Curve, draw_curves
from robustbench_elliptical.reports.figures.style import (
    INK,
    drawable,
    figure,
    legend_below,
    look,
    whole_ticks,
)

__all__ = ["depth_figures"]

_TOGETHER = 6
"""Models up to which clean and attacked stand in one figure."""

_HALF = 0.5
"""Attention-IoU above which, if all of it is, the axis doesn't begin at 0."""

_DEPTH = "blocks passed"
_COSINE = "cosine similarity of tokens"

_BANDS = 3
"""Models up to which intervals are drawn as bands; more are drawn as bars."""

Dashes = Literal["-"] | tuple[float, tuple[float, ...]]

_CLEAN_LINE: Dashes = "-"
_ATTACKED_LINE: Dashes = (0, (3, 1.6))


class _State(NamedTuple):
    """Clean, or an attack."""

    label: str
    curves: list[Curve]
    line: Dashes


def depth_figures(
    block: ImageBlock, frames: Mapping[str, pd.DataFrame], unit: ImageUnit | None, name: str
) -> Iterator[Figure]:
    """Yield token similarity and Attention-IoU by depth.

    Parameters
    ----------
    block
        The models.
    frames
        Its frames of `inside_frames`.
    unit
        The attack to compare at, if there is one.
    name
        What the names of the figures begin with.
    """
    similarity = frames["token-similarity"]
    clean = ImageUnit(CLEAN, None, 0.0)
    states = [_state(block, similarity, clean, "clean", _CLEAN_LINE)]
    if unit is not None:
        states.append(_state(block, similarity, unit, f"under {unit.title}", _ATTACKED_LINE))
    states = [state for state in states if state.curves]
    together = len(block.entries) <= _TOGETHER
    groups = [states] if together and states else [[state] for state in states]
    for place, group in enumerate(groups, start=1):
        suffix = f"-{place}" if len(groups) > 1 else ""
        yield _similarity(group, _limits(states), f"{name}-token-similarity{suffix}")
    if unit is not None:
        rows = rows_at(frames["attention-iou"], unit)
        if not rows.empty:
            under = f"under {unit.title} ({sizes(rows)})"
            yield _iou(_curves(block, rows, "block"), under, f"{name}-attention-iou")


def _state(
    block: ImageBlock, frame: pd.DataFrame, unit: ImageUnit, label: str, line: Dashes
) -> _State:
    rows = rows_at(frame, unit)
    counted = "" if rows.empty else f" ({sizes(rows)})"
    return _State(label + counted, _curves(block, rows, "depth"), line)


def _curves(block: ImageBlock, rows: pd.DataFrame, across: str) -> list[Curve]:
    curves = []
    for place, entry in enumerate(block.entries):
        own = rows[rows["model"] == entry.label]
        if not own.empty:
            columns = own[[across, "mean", "low", "high"]].to_numpy(float)
            curves.append(Curve(entry.label, place, *columns.T))
    return curves


def _numbers(curves: Sequence[Curve], where: str) -> str:
    return "; ".join(
        f"{curve.label}: "
        + ", ".join(
            f"{value:.3f} {where} {place:.0f}"
            for place, value in zip(curve.sizes, curve.heights, strict=True)
        )
        for curve in curves
    )


def _similarity(states: Sequence[_State], limits: tuple[float, float], name: str) -> Figure:
    shown = " and ".join(state.label for state in states)
    title = f"Cosine similarity of tokens by depth, {shown}, with 95 % intervals"
    description = ". ".join(
        f"{state.label}: {_numbers(state.curves, 'after block count')}" for state in states
    )
    return Figure(
        name,
        title,
        f"Mean cosine of two different tokens, by the number of blocks passed. {description}.",
        partial(_draw_similarity, states, limits),
    )


def _draw_similarity(states: Sequence[_State], limits: tuple[float, float]) -> Drawing:
    if len(states) == 1:
        made, axes = draw_curves(states[0].curves, _DEPTH, _COSINE)
    else:
        made, axes = _draw_states(states)
    whole_ticks(axes.xaxis)
    axes.set_ylim(*limits)
    return made


def _limits(states: Sequence[_State]) -> tuple[float, float]:
    """Return the ends of the axis that all the figures share."""
    low = min(float(curve.low.min()) for state in states for curve in state.curves)
    high = max(float(curve.high.max()) for state in states for curve in state.curves)
    room = 0.04 * (high - low) or 0.04
    return low - room, high + room


def _draw_states(states: Sequence[_State]) -> tuple[Drawing, Axes]:
    """Draw all states in one figure: models by colour and marker, states by dashes."""
    labels = {curve.place: curve.label for state in reversed(states) for curve in state.curves}
    made, axes = figure(len(labels) + len(states))
    for state in states:
        for curve in state.curves:
            _line(axes, curve, state.line, bands=len(labels) <= _BANDS)
    axes.set_xlabel(_DEPTH)
    axes.set_ylabel(_COSINE)
    handles = [_handle(place) for place in sorted(labels)]
    handles += [Line2D([], [], color=INK, linestyle=state.line) for state in states]
    words = [labels[place] for place in sorted(labels)] + [state.label for state in states]
    legend_below(made, handles, [drawable(word) for word in words])
    return made, axes


def _line(axes: Axes, curve: Curve, line: Dashes, *, bands: bool) -> None:
    colour, marker, _ = look(curve.place)
    axes.plot(
        curve.sizes, curve.heights, color=colour, marker=marker, linestyle=line, clip_on=False
    )
    if bands:
        axes.fill_between(curve.sizes, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    else:
        axes.vlines(curve.sizes, curve.low, curve.high, color=colour, linewidth=0.7)


def _handle(place: int) -> Line2D:
    colour, marker, _ = look(place)
    return Line2D([], [], color=colour, marker=marker, linestyle="none")


def _iou(curves: Sequence[Curve], under: str, name: str) -> Figure:
    title = f"Attention-IoU with the clean image by block, {under}, with 95 % intervals"
    description = (
        "Overlap of the class token's attention to the patches with that for the clean image; 1 is "
        f"unchanged; blocks are counted from 0. {_numbers(curves, 'in block')}."
    )
    return Figure(name, title, description, partial(_draw_iou, curves))


def _draw_iou(curves: Sequence[Curve]) -> Drawing:
    made, axes = draw_curves(curves, "block, from 0", "Attention-IoU")
    whole_ticks(axes.xaxis)
    axes.axhline(1.0, color=INK, linewidth=0.7, linestyle=":")
    axes.annotate(
        "unchanged", (1, 1.0), xycoords=("axes fraction", "data"), xytext=(0, 2),
        textcoords="offset points", ha="right", va="bottom", fontsize=6.2,
    )  # fmt: skip
    lowest = min(float(curve.low.min()) for curve in curves)
    bottom = 0.0 if lowest < _HALF else 1 - 1.1 * max(1 - lowest, 0.01)
    axes.set_ylim(bottom, 1 + 0.1 * (1 - bottom))
    return made

"""Figures of perplexity against the rate of contamination."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure as Drawing

from robustbench_elliptical.reports.blocks import TextBlock
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.contents.wording import number, slug
from robustbench_elliptical.reports.figures.curves import Curve, draw_curves
from robustbench_elliptical.reports.figures.style import plain_log_ticks

__all__ = ["text_figures"]

_KINDS = (
    ("all", "perplexity", "low", "high", "perplexity, all targets"),
    (
        "clean-targets",
        "clean_target_perplexity",
        "clean_target_low",
        "clean_target_high",
        "perplexity, unswapped words",
    ),
)
_LOGARITHMIC = 4.0
"""Ratio of the largest to the smallest value from which the axis is logarithmic."""


def text_figures(block: TextBlock, measured: pd.DataFrame, name: str) -> Iterator[Figure]:
    """Yield the figures of a block; see `image_figures`."""
    for attack in block.attacks:
        for kind in _KINDS:
            curves = _curves(block, measured, attack, kind)
            if curves:
                yield _figure(curves, attack, kind, name)


def _curves(
    block: TextBlock, measured: pd.DataFrame, attack: str, kind: tuple[str, ...]
) -> list[Curve]:
    _, value, low, high, _ = kind
    curves = []
    for place, entry in enumerate(block.entries):
        own = measured[
            (measured["model"] == entry.label)
            & measured["attack"].isin(["clean", attack])
            & measured[value].notna()
        ].sort_values("rate")
        if (own["attack"] == attack).any():
            columns = own[["rate", value, low, high]].to_numpy(float) * [100, 1, 1, 1]
            curves.append(Curve(entry.label, place, *columns.T))
    return curves


def _figure(curves: list[Curve], attack: str, kind: tuple[str, ...], name: str) -> Figure:
    label = kind[4]
    numbers = "; ".join(
        f"{curve.label}: "
        + ", ".join(
            f"{number(value)} at {size:g} %"
            for size, value in zip(curve.sizes, curve.heights, strict=True)
        )
        for curve in curves
    )
    title = f"{label.capitalize()}, under {attack} against its rate, with 95 % intervals"
    return Figure(
        f"{name}-perplexity-{kind[0]}-{slug(attack)}",
        title,
        f"{numbers}.",
        partial(_draw, curves, label),
    )


def _draw(curves: Sequence[Curve], label: str) -> Drawing:
    made, axes = draw_curves(curves, "swapped words, % of the eligible ones", label)
    values = [float(value) for curve in curves for value in curve.heights]
    if max(values) > _LOGARITHMIC * min(values):
        axes.set_yscale("log")
        plain_log_ticks(axes.yaxis)
    return made

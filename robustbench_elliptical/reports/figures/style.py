"""How every figure looks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from robustbench_elliptical.reports.formats.escaping import plain

__all__ = [
    "INK",
    "WIDTH",
    "Look",
    "drawable",
    "figure",
    "fitted",
    "legend_below",
    "look",
    "plain_log_ticks",
    "style",
    "whole_ticks",
]

INK = "#14181c"
"""Of text and axes; in a page it becomes the colour of the page's text."""

WIDTH = 3.3
"""Inches: the column of a two-column paper."""

_HEIGHT = 2.1
_LEGEND_ROW = 0.145
_LONGEST = 44
"""Letters of a name in a legend."""

# Okabe & Ito 2008 without yellow, which is too light on paper, and black, the ink.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")
_LINES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (4, 1.5)),
    (0, (4, 1.5, 1, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1, 1, 1, 1, 1)),
)
"""Dashes, in widths of the line."""

_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "axes.labelsize": 7.0,
    "axes.titlesize": 7.5,
    "legend.fontsize": 6.2,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#8a9099",
    "grid.alpha": 0.35,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "robustbench-elliptical",
    "pdf.fonttype": 42,
    "savefig.dpi": 240,
}


class Look(NamedTuple):
    """What tells one model from another, in colour and without."""

    colour: str
    marker: str
    line: tuple[float, tuple[float, ...]]


@contextmanager
def style() -> Iterator[None]:
    """Draw and save in the style of the reports, whatever the user's settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)  # type: ignore[arg-type]
        yield


def look(place: int) -> Look:
    """Return the look of a model by its place among the models."""
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        _LINES[place % len(_LINES)],
    )


def figure(legend_rows: int) -> tuple[Figure, Axes]:
    """Return an empty figure with room for a legend below."""
    made = Figure(figsize=(WIDTH, _HEIGHT + _LEGEND_ROW * legend_rows + 0.08), layout="constrained")
    return made, made.add_subplot()


def legend_below(made: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Set a legend of one column below the axes."""
    made.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=1,
        labelspacing=0.25,
        borderpad=0.0,
        borderaxespad=0.2,
    )


def plain_log_ticks(axis: Axis) -> None:
    """Label a logarithmic axis by plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def whole_ticks(axis: Axis) -> None:
    """Label an axis by whole numbers."""
    axis.set_major_locator(MaxNLocator(8, integer=True))
    axis.set_major_formatter("{x:.0f}")


@cache
def _has_glyph(letter: str) -> bool:
    font = get_font(findfont(FontProperties(family="DejaVu Sans")))
    return font.get_char_index(ord(letter)) != 0


def drawable(text: str) -> str:
    """Return a name as a figure can show it: short, and without letters the font lacks."""
    shown = "".join(letter if _has_glyph(letter) else "\u25a1" for letter in plain(text))
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "\u2026"


def fitted(text: str, width: float, size: float, lines: int = 2) -> str:
    """Return a text broken into lines and cut so that it fits.

    Parameters
    ----------
    text
        A name from anywhere.
    width, size
        Of the place and of the letters, in points.
    lines
        The most there are.
    """
    rows = [""]
    for word in drawable(text).split(" "):
        longer = f"{rows[-1]} {word}".strip()
        if not rows[-1] or _width(longer, size) <= width:
            rows[-1] = longer
        else:
            rows.append(word)
    if len(rows) > lines:
        rows = [*rows[: lines - 1], f"{' '.join(rows[lines - 1 :])}"]
    return "\n".join(_cut(row, width, size) for row in rows)


def _cut(text: str, width: float, size: float) -> str:
    kept = text
    while text and _width(kept, size) > width:
        text = text[:-1]
        kept = f"{text}\u2026"
    return kept


def _width(text: str, size: float) -> float:
    font = FontProperties(family="DejaVu Sans", size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])

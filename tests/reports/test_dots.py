"""More models than curves can show: one row each."""

import numpy as np
import pytest

from robustbench_elliptical.reports.figures.curves import Curve
from robustbench_elliptical.reports.figures.dots import MOST_CURVES, draw_dots
from robustbench_elliptical.reports.figures.images import _draw_curve
from robustbench_elliptical.reports.figures.style import style

SIZES = np.array([0.0, 4.0, 8.0])


def curve(place, sizes=SIZES):
    heights = 90.0 - place - 5 * sizes
    return Curve(f"model-{place}", place, sizes, heights, heights - 2, heights + 3)


@pytest.fixture
def axes():
    curves = [curve(place) for place in range(9)]
    curves[4] = curve(4, SIZES[:2])  # It was not attacked at the largest size.
    with style():
        return draw_dots(curves, "epsilon", "accuracy").axes[0]


def test_every_point_stands_in_the_row_of_its_model(axes):
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"model-{place}" for place in range(9)
    ]
    top, bottom = sorted(axes.get_ylim())
    assert axes.yaxis_inverted()
    assert (top, bottom) == (-0.5, 8.5)
    assert len(axes.lines) == len(SIZES)
    for size, line in zip(SIZES, axes.lines, strict=True):
        rows = [row for row in range(9) if not (row == 4 and size == 8)]
        np.testing.assert_allclose(line.get_ydata(), rows)
        np.testing.assert_allclose(line.get_xdata(), [90 - row - 5 * size for row in rows])


def test_intervals_reach_from_low_to_high(axes):
    for size, bars in zip(SIZES, axes.collections, strict=True):
        for segment in bars.get_segments():
            row = segment[0][1]
            middle = 90 - row - 5 * size
            np.testing.assert_allclose(segment[:, 0], [middle - 2, middle + 3])


def test_sizes_are_told_in_the_legend(axes):
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "epsilon: 0",
        "epsilon: 4",
        "epsilon: 8",
    ]


@pytest.mark.parametrize(("count", "rows"), [(MOST_CURVES, False), (MOST_CURVES + 1, True)])
def test_many_models_get_rows_and_few_get_curves(count, rows):
    with style():
        made = _draw_curve([curve(place) for place in range(count)], "epsilon")
    assert bool(made.axes[0].yaxis_inverted()) == rows

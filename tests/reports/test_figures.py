"""Figures: the numbers they draw, and that they can be told apart."""

import json
import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from robustbench_elliptical.reports.figures import render_figure
from robustbench_elliptical.reports.figures.style import WIDTH, drawable, look, style


@pytest.fixture(scope="module")
def sections(example):
    from robustbench_elliptical.reports.blocks import gather, read_runs
    from robustbench_elliptical.reports.contents import build_report

    runs = read_runs(example)
    return build_report(runs, gather(runs)).sections


def drawn(figure):
    with style():
        return figure.draw()


def by_name(section, name):
    return next(figure for figure in section.figures if figure.name == name)


def test_a_curve_draws_the_numbers_of_the_table(sections):
    figure = by_name(sections[0], "fashion-mnist-accuracy-linf-pgd")
    (axes,) = drawn(figure).axes
    frame = sections[0].frames["accuracy"]
    lines = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert len(lines) == 4
    for line, model in zip(lines, dict.fromkeys(frame["model"]), strict=True):
        own = frame[(frame["model"] == model) & frame["attack"].isin(["clean", "pgd"])]
        np.testing.assert_allclose(line.get_xdata(), own["epsilon"] * 255, rtol=1e-9)
        np.testing.assert_allclose(line.get_ydata(), own["accuracy"] * 100)
        assert f"{model}: {100 * own['accuracy'].iloc[0]:.1f} % at 0" in figure.description
    assert axes.get_xlabel() == "L-infinity epsilon, in 1/255 of the pixel range"
    assert axes.get_ylabel() == "accuracy, % of n"


def test_costs_are_drawn_with_intervals(sections):
    figure = by_name(sections[0], "fashion-mnist-accuracy-cost-2")
    (axes,) = drawn(figure).axes
    bars = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert sum(len(each.get_segments()) for each in bars) == 4 * 3
    assert axes.get_xscale() == "log"


def test_every_figure_fits_a_column(sections):
    for section in sections:
        for figure in section.figures:
            drawing = drawn(figure)
            assert drawing.get_figwidth() == WIDTH
            if drawing.axes[0].axison:  # pictures have no axes
                assert drawing.axes[0].get_xlabel() or drawing.get_supxlabel()
                assert drawing.axes[0].get_ylabel() or drawing.get_supylabel()


def test_models_are_told_apart_without_colour():
    looks = [look(place) for place in range(12)]
    assert len({each.marker for each in looks}) == 12
    assert len({(each.colour, each.line) for each in looks}) == 12


def test_names_that_no_font_has():
    assert drawable("模型") == "□□"
    assert drawable("a\u202eb $x^2$") == "a\\u202eb $x^2$"
    assert len(drawable("x" * 300)) == 44


def test_two_figures_in_a_page_share_no_name(sections):
    names = []
    for figure in sections[2].figures:
        inline = render_figure(figure).inline
        assert inline.startswith("<svg ")
        assert inline.endswith("</svg>")
        names += re.findall(r'\bid="([^"]*)"', inline)
        for target in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', inline):
            assert (target[0] or target[1]) in names
    assert len(names) == len(set(names))


def test_the_description_is_beside_the_figure(report, sections):
    figures = json.loads((report / "report.json").read_text())["sections"][2]["figures"]
    assert [each["description"] for each in figures] == [
        figure.description for figure in sections[2].figures
    ]

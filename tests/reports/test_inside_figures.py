"""Figures of the inside: the numbers they draw, read back from the axes, and that they fit."""

import warnings
from unittest import mock

import insides
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.text import Text
from synthetic import image_evaluation, model_record, write
from test_hostile import NAMES

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks import gather, read_runs
from robustbench_elliptical.reports.contents import build_report
from robustbench_elliptical.reports.figures import render_figure
from robustbench_elliptical.reports.figures.style import WIDTH, style

EPSILONS = (4 / 255, 8 / 255)


def section(folder, names, *, attacks=("pgd",), **options):
    records = [model_record(name) for name in names]
    made = image_evaluation(
        records,
        strengths=np.linspace(0.3, 0.6, len(names)),
        attacks=attacks,
        epsilons=EPSILONS,
        n=40,
    )
    write(folder, insides.with_inside(made, **options))
    runs = read_runs([folder])
    return build_report(runs, gather(runs)).sections[0]


@pytest.fixture(scope="module")
def micro(tmp_path_factory):
    return section(tmp_path_factory.mktemp("micro") / "run", ["softmax", "elliptical"])


def by_name(section, end):
    return next(each for each in section.figures if each.name == f"fashion-mnist-{end}")


def drawn(figure):
    with style(), warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = figure.draw()
        FigureCanvasAgg(drawing).draw()
    return drawing


def rows(section, frame, **values):
    found = section.frames[frame]
    for name, value in values.items():
        found = found[np.isclose(found[name], value)] if name == "epsilon" else found[
            found[name] == value
        ]  # fmt: skip
    return found


def test_token_similarity_draws_the_frame(micro):
    (axes,) = drawn(by_name(micro, "token-similarity")).axes
    lines = iter(axes.lines)
    for attack, epsilon, dashed in (("clean", 0.0, False), ("pgd", 8 / 255, True)):
        for model in ("softmax", "elliptical"):
            own = rows(micro, "token-similarity", model=model, attack=attack, epsilon=epsilon)
            line = next(lines)
            np.testing.assert_array_equal(line.get_xdata(), own["depth"])
            np.testing.assert_array_equal(line.get_ydata(), own["mean"])
            assert line.is_dashed() is dashed
    assert sum(isinstance(each, PolyCollection) for each in axes.collections) == 4
    assert axes.get_ylim()[1] >= micro.frames["token-similarity"]["high"].max()
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == [
        "softmax", "elliptical", "clean (n = 24)", "under pgd 8/255 (n = 24)",
    ]  # fmt: skip


def test_many_models_get_a_figure_for_each_state(tmp_path):
    names = [f"{place}-elliptical" for place in range(10)]
    made = section(tmp_path / "run", names, shown=1)
    both = [drawn(by_name(made, f"token-similarity-{place}")).axes[0] for place in (1, 2)]
    assert [len(axes.lines) for axes in both] == [10, 10]
    assert both[0].get_ylim() == both[1].get_ylim()
    assert len({line.get_color() + str(line.get_marker()) for line in both[0].lines}) == 10
    single = [each.name for each in made.figures if each.name.startswith("fashion-mnist-pictures")]
    assert single == [f"fashion-mnist-pictures-{place}" for place in range(1, 9)]
    (table,) = [table for table in made.tables if table.name.endswith("inside")]
    assert len(table.rows) == 10
    assert "first 8 models" in table.notes[-1]


def test_attention_iou_draws_the_frame(micro):
    (axes,) = drawn(by_name(micro, "attention-iou")).axes
    for line, model in zip(axes.lines, ("softmax", "elliptical"), strict=False):
        own = rows(micro, "attention-iou", model=model, attack="pgd", epsilon=8 / 255)
        np.testing.assert_array_equal(line.get_xdata(), own["block"])
        np.testing.assert_array_equal(line.get_ydata(), own["mean"])
    np.testing.assert_array_equal(axes.lines[2].get_ydata(), [1, 1])
    low, high = axes.get_ylim()
    assert (low, high) == (0, 1.1)
    assert low < micro.frames["attention-iou"]["low"].min() < 1 < high


def test_attention_that_hardly_moves_is_seen_to_move(tmp_path):
    figure = by_name(section(tmp_path / "run", ["softmax"], calm=0.01), "attention-iou")
    (axes,) = drawn(figure).axes
    low, high = axes.get_ylim()
    assert 0.9 < low < axes.lines[0].get_ydata().min()
    assert 1 < high < 1.02


def test_the_metric_is_a_row_a_head_sorted(micro):
    figure = by_name(micro, "metric-2")
    chart, side = drawn(figure).axes[:2]
    shown = chart.images[0].get_array()
    own = rows(micro, "metric", model="elliptical")
    heads = [group["metric"].to_numpy() for _, group in own.groupby(["block", "head"])]
    assert len(heads) == 12
    full = [row for row in shown if not np.ma.getmaskarray(row).all()]
    assert len(shown) == 12 + 2
    for row, head in zip(full, heads, strict=True):
        np.testing.assert_array_equal(row, np.sort(head)[::-1])
    np.testing.assert_allclose(side.lines[0].get_xdata(), [head.mean() for head in heads])
    bars = side.collections[0].get_segments()
    np.testing.assert_allclose(
        [bar[1, 0] - bar[0, 0] for bar in bars], [2 * head.std() for head in heads]
    )
    assert f"block 3 head 3: {heads[-1].mean():.3f}, {heads[-1].std():.3f}" in figure.description
    assert [label.get_text() for label in chart.get_yticklabels()] == ["1", "2", "3"]


def test_the_change_of_the_metric_is_a_panel_a_block(micro):
    panels = drawn(by_name(micro, "metric-change-2")).axes
    assert [panel.get_title() for panel in panels] == ["block 1", "block 2", "block 3"]
    for block, panel in enumerate(panels, start=1):
        points = [line for line in panel.lines if line.get_marker() != "None"]
        bars = [each for each in panel.collections if isinstance(each, LineCollection)]
        for head, (line, bar) in enumerate(zip(points, bars, strict=True)):
            own = rows(
                micro, "metric-change", model="elliptical", attack="pgd", block=block, head=head
            ).sort_values("epsilon")
            np.testing.assert_allclose(line.get_xdata(), own["epsilon"] * 255, rtol=1e-9)
            np.testing.assert_array_equal(line.get_ydata(), own["mean"])
            ends = np.array(bar.get_segments())[:, :, 1]
            np.testing.assert_array_equal(ends, own[["low", "high"]])
        assert panel.get_ylim()[1] >= micro.frames["metric-change"]["high"].max()


def test_no_metric_no_figure(micro):
    names = {each.name for each in micro.figures}
    assert not names & {"fashion-mnist-metric-1", "fashion-mnist-metric-change-1"}


def texts_of(drawing):
    """The texts that are drawn, with their boxes: ticks beyond the ends of an axis are not."""
    seen, draw = [], Text.draw

    def note(text, renderer):
        seen.append(text)
        draw(text, renderer)

    with style(), mock.patch.object(Text, "draw", note):
        renderer = FigureCanvasAgg(drawing).get_renderer()
        drawing.draw(renderer)
    shown = [text for text in dict.fromkeys(seen) if text.get_visible() and text.get_text()]
    return [(text, text.get_window_extent(renderer)) for text in shown]


def check_fits(drawing):
    """Every text lies inside the figure, and on no other."""
    boxes = texts_of(drawing)
    assert len(boxes) > 4
    width, height = drawing.bbox.size
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= height + 1, text
    for place, (text, box) in enumerate(boxes):
        for other, its in boxes[:place]:
            across = min(box.x1, its.x1) - max(box.x0, its.x0)
            up = min(box.y1, its.y1) - max(box.y0, its.y0)
            assert across < 1 or up < 1, (text, other)


def inside_figures(section):
    return [each for each in section.figures if "-accuracy-" not in each.name]


SHAPES = {
    "micro": {},
    "small": {"blocks": 12, "heads": 6, "components": 64},
    "base": {"blocks": 12, "heads": 12, "components": 64},
    "two blocks": {"blocks": 2, "heads": 1, "components": 4},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_figure_fits(tmp_path, shape):
    made = section(tmp_path / "run", ["elliptical"], shown=2, **SHAPES[shape])
    figures = inside_figures(made)
    assert len(figures) == 5
    for figure in figures:
        drawing = drawn(figure)
        assert drawing.get_figwidth() == WIDTH
        assert drawing.get_figheight() < 6.5
        check_fits(drawing)
        assert "n = 24" in figure.title or "2 images" in figure.title


def test_hostile_names_are_drawn_as_they_are(tmp_path):
    names = [f"elliptical {name}" for name in NAMES[:4]]
    made = section(
        tmp_path / "run", names, attacks=(NAMES[2],), classes=NAMES, shown=4,
        pictures={"classes": len(NAMES)},
    )  # fmt: skip
    figures = inside_figures(made)
    assert len(figures) == 2 + 3 * 4
    for figure in figures:
        drawing = drawn(figure)
        check_fits(drawing)
        inline = render_figure(figure).inline
        assert "<script" not in inline
    words = {text.get_text() for text, _ in texts_of(drawn(figures[0]))}
    assert any("$x_1$" in word for word in words)


def test_a_file_of_pictures_must_be_there(tmp_path):
    section(tmp_path / "run", ["softmax"])
    (tmp_path / "run" / "pictures.safetensors").unlink()
    runs = read_runs([tmp_path / "run"])
    with pytest.raises(UsageError, match=r"pictures\.safetensors"):
        build_report(runs, gather(runs))

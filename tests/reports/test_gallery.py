"""Pictures: what is shown of each, pixel by pixel, and what is written beside it."""

import insides
import numpy as np
import pytest
from synthetic import image_evaluation, model_record, write

from robustbench_elliptical.reports.blocks import gather, read_runs
from robustbench_elliptical.reports.blocks.pictures import Picture, load_pictures
from robustbench_elliptical.reports.contents import build_report
from robustbench_elliptical.reports.figures.pixels import (
    amplification,
    amplified,
    grey,
    overlay,
    upright,
)
from robustbench_elliptical.reports.figures.style import fitted, style

UNIT = ("pgd", "linf", 8 / 255)


def picture(clean, attacked):
    record, _ = insides.picture("softmax", UNIT, 0)
    return Picture(record, np.asarray(clean, float), np.asarray(attacked, float), None, None)


def test_the_difference_is_grey_where_nothing_changed():
    clean = np.full((1, 2, 2), 0.5)
    attacked = clean + np.array([[[0.0, 0.03], [-0.03, 0.01]]])
    each = picture(clean, attacked)
    factor = amplification([each])
    assert factor == 16
    shown = amplified(each, factor)
    assert shown.shape == (2, 2, 3)
    np.testing.assert_allclose(shown[..., 0], [[0.5, 0.98], [0.02, 0.66]])


@pytest.mark.parametrize(
    ("largest", "factor"), [(0.5, 1), (1.0, 1), (0.25, 2), (8 / 255, 15), (0.0, 1), (1 / 255, 127)]
)
def test_the_factor_stretches_the_largest_difference(largest, factor):
    clean = np.zeros((1, 1, 2))
    small, large = picture(clean, clean), picture(clean, clean + np.array([[[0, largest]]]))
    assert amplification([small, large]) == factor
    shown = amplified(large, factor)
    assert shown.min() >= 0
    assert shown.max() <= 1


def test_channels_become_the_last_axis():
    image = np.arange(12.0).reshape(3, 2, 2) / 12
    np.testing.assert_array_equal(upright(image)[1, 0], image[:, 1, 0])
    np.testing.assert_array_equal(upright(image[:1])[..., 2], image[0])
    np.testing.assert_allclose(upright(image[:2])[..., 1], image[:2].mean(axis=0))
    white = grey(np.ones((3, 1, 1)))
    np.testing.assert_allclose(white, 1.0)
    np.testing.assert_allclose(grey(np.array([1.0, 0, 0]).reshape(3, 1, 1)), 0.299)


def test_attention_covers_its_patches():
    attention = np.array([[0.0, 0.2], [0.4, 0.4]])
    shown = overlay(np.zeros((1, 4, 6)), attention, 0.4)
    assert shown.shape == (4, 6, 3)
    np.testing.assert_array_equal(shown[:2, :3], 0.0)
    full, half = shown[3, 5], shown[0, 5]
    np.testing.assert_allclose(half, full / 2)
    np.testing.assert_array_equal(shown[2:, :], np.broadcast_to(full, (2, 6, 3)))
    assert full[0] > full[1] > full[2] == 0
    white = overlay(np.ones((1, 2, 2)), np.zeros((2, 2)), 0.0)
    np.testing.assert_allclose(white, 1.0)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    def build(name, **options):
        folder = tmp_path_factory.mktemp("gallery") / name
        made = image_evaluation(
            [model_record("softmax")], strengths=[0.3], attacks=("pgd",), epsilons=(8 / 255,), n=40
        )
        write(folder, insides.with_inside(made, **options))
        runs = read_runs([folder])
        (block,) = blocks = gather(runs)
        section = build_report(runs, blocks).sections[0]
        figure = next(each for each in section.figures if "pictures" in each.name)
        with style():
            return block.entries[0], figure, figure.draw()

    return build


def images(drawing):
    return [axes.images[0].get_array() for axes in drawing.axes]


def words(drawing):
    return [text.get_text() for text in drawing.texts]


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 20, 30)])
def test_a_row_is_clean_attacked_difference_and_attention(built, shape):
    entry, figure, drawing = built("run", pictures={"shape": shape})
    shown = images(drawing)
    assert len(shown) == 4 * 5
    unit = next(unit for unit in entry.pictures if unit.attack == "pgd")
    for place, each in enumerate(load_pictures(entry.pictures[unit][:4])):
        row = shown[5 * place : 5 * place + 5]
        np.testing.assert_array_equal(row[0], upright(each.clean))
        np.testing.assert_array_equal(row[1], upright(each.attacked))
        np.testing.assert_array_equal(row[2], amplified(each, 15))
        largest = max(each.clean_attention.max(), each.attacked_attention.max())
        np.testing.assert_array_equal(row[3], overlay(each.clean, each.clean_attention, largest))
        np.testing.assert_array_equal(
            row[4], overlay(each.attacked, each.attacked_attention, largest)
        )
    assert figure.title == (
        "softmax under pgd 8/255: the first 4 of 5 images kept; difference times 15 around grey"
    )
    assert "Orange" in figure.description


def test_without_maps_three_columns(built):
    _, figure, drawing = built("run", pictures={"maps": False}, shown=2)
    assert len(images(drawing)) == 2 * 3
    assert "difference, \u00d715" in words(drawing)
    assert "Orange" not in figure.description


def test_classes_are_called_by_their_names(built):
    _, figure, drawing = built("run", shown=2)
    found = words(drawing)
    assert found[-6:] == [
        "true: T-shirt/top", "✓ T-shirt/top", "✗ Trouser",
        "true: Trouser", "✓ Trouser", "✗ Coat",
    ]  # fmt: skip
    assert "fashion-mnist/00001, Trouser: Trouser when clean, Coat under attack" in (
        figure.description
    )


def test_classes_without_names_are_numbers(built):
    _, _, drawing = built("run", shown=1, classes=None)
    assert words(drawing)[-3:] == ["true: class 0", "✓ class 0", "✗ class 1"]
    _, _, drawing = built("run", shown=2, classes=["only one"])
    assert words(drawing)[-3:] == ["true: class 1", "✓ class 1", "✗ class 4"]


@pytest.mark.parametrize("text", ["W" * 60, "a b " * 20, "American Staffordshire terrier", "$x_1$"])
def test_words_fit_their_place(text):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        shown = fitted(text, 44.0, 5.8)
        drawing = Figure(dpi=720)
        canvas = FigureCanvasAgg(drawing)
        box = drawing.text(0, 0, shown, fontsize=5.8).get_window_extent(canvas.get_renderer())
    assert len(shown.split("\n")) <= 2
    assert box.width / 10 <= 44.5
    assert shown.startswith(text[:3])
    assert shown == text or "…" in shown or shown.replace("\n", " ") == text

"""The parts of the benchmark of mechanisms: what is counted and compared, never a time."""

import pytest
import torch

from benchmarks.formulas import FORMULAS, formula_floor
from benchmarks.layers import build_layer
from benchmarks.mechanisms import LINEAR, Place, cost_table, exponent
from benchmarks.memory import peak_bytes
from benchmarks.rows import QUICK
from benchmarks.timing import Budget
from robustbench_elliptical.models.attention import MECHANISMS


def test_peak_is_what_is_held_at_a_time_not_what_is_asked_for_in_all():
    def run():
        first = torch.ones(1000, 250)
        second = first + 1
        del first
        return second * 2

    assert peak_bytes(run) == pytest.approx(2_000_000, abs=100)
    assert peak_bytes(lambda: torch.ones(500, 500).sum()) == pytest.approx(1_000_000, abs=100)


def test_gradients_of_an_earlier_run_do_not_hide_memory():
    layer = build_layer("softmax", 50)
    assert len({peak_bytes(layer.forward_backward) for _ in range(3)}) == 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_layer_with_gradients(name):
    layer = build_layer(name, 9)
    assert layer.forward().shape == (2, 9, 192)
    gradient = layer.forward_backward()[0]
    assert gradient.shape == (2, 9, 192)
    assert gradient.isfinite().all()
    assert build_layer(name, 9, causal=True) is None or MECHANISMS[name].capabilities.causal != "no"


def test_causal_layers_do_not_see_the_future():
    layer = build_layer("elliptical", 9, causal=True)
    before = layer.forward()
    layer._tokens = torch.cat([layer._tokens[:, :6], torch.randn(2, 3, 192)], dim=1)
    torch.testing.assert_close(layer.forward()[:, :6], before[:, :6])


def test_a_table_has_a_cell_for_each_mechanism_and_place():
    text = cost_table("T", [Place(5), Place(6, causal=True)], lambda *_: "x", ("softmax", "primal"))
    assert text.splitlines()[2:] == [
        "| mechanism | N = 5 | N = 6, causal |",
        "| --- | ---: | ---: |",
        "| softmax | x | x |",
        "| primal | x | no causal form |",
    ]


def test_the_exponent_is_that_of_the_formula(monkeypatch):
    monkeypatch.setattr("benchmarks.mechanisms.compare", lambda *_: (8.0, 16.0, 32.0, 3))
    assert exponent("softmax", 4, 16, Budget(0.0)) == pytest.approx((1.5, 2.0, 2.5))
    assert set(LINEAR) <= set(MECHANISMS)


def test_formulas_by_hand_agree_with_the_mechanisms():
    # The benchmark stops where they differ.
    rows = formula_floor(QUICK)
    assert len(rows) == 2 * len(FORMULAS)

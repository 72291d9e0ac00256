import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_elliptical.results import holm, mcnemar, paired_difference


def pair(both, only_a, only_b, neither):
    counts = (both, only_a, only_b, neither)
    return (
        np.repeat([True, True, False, False], counts),
        np.repeat([True, False, True, False], counts),
    )


def binomial_tail(k, n):
    return sum(math.comb(n, i) for i in range(k + 1)) / 2**n


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_closed_form(only_a, only_b):
    found = mcnemar(*pair(5, only_a, only_b, 3))
    tail = binomial_tail(min(only_a, only_b), only_a + only_b)
    assert found[:2] == (only_a, only_b)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        # Fagerland, Lydersen & Laake 2014, airway hyper-responsiveness, Tango's interval
        ((1, 1, 7, 12), -0.517, -0.026),
    ],
)
def test_published_intervals(counts, low, high):
    found = paired_difference(*pair(*counts))
    assert found.low == pytest.approx(low, abs=6e-4)
    assert found.high == pytest.approx(high, abs=6e-4)


def test_no_sample_differs():
    """Without discordant pairs the ends are +- z^2 / (n + z^2)."""
    found = paired_difference(*pair(60, 0, 0, 40))
    square = 1.959963984540054**2
    end = square / (100 + square)
    assert found == pytest.approx((0.0, -end, end), abs=1e-9)
    assert mcnemar(*pair(60, 0, 0, 40)).p_value == 1.0


@settings(max_examples=60, deadline=None)
@given(*[st.integers(0, 30)] * 4)
def test_the_interval_holds_the_difference_and_turns_with_the_models(both, a, b, neither):
    if both + a + b + neither == 0:
        return
    first, second = pair(both, a, b, neither)
    one, other = paired_difference(first, second), paired_difference(second, first)
    assert -1 <= one.low <= one.difference <= one.high <= 1
    assert one == pytest.approx((-other.difference, -other.high, -other.low), abs=1e-9)
    assert one.difference == pytest.approx(first.mean() - second.mean())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_it_excludes_zero_where_the_asymptotic_test_does(a, b):
    score = 0.0 if a == b else (a - b) / math.sqrt(a + b)
    found = paired_difference(*pair(50, a, b, 30))
    if abs(abs(score) - 1.959963984540054) > 1e-6:
        assert (not found.low <= 0 <= found.high) == (abs(score) > 1.959963984540054)


def test_it_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        drawn = rng.multinomial(80, [0.4, 0.25, 0.1, 0.25])
        found = paired_difference(*pair(*drawn))
        hits += found.low <= 0.15 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_holm_by_hand():
    """Smallest times 4, next times 3, ...; never below the one before, never above 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6, 1.0]) == pytest.approx([1.0, 1.0, 1.0])
    assert holm([]).shape == (0,)


@pytest.mark.parametrize("values", [[0.1, math.nan], [-0.1], [1.1], [[0.1, 0.2]]])
def test_no_p_values(values):
    with pytest.raises(ValueError, match=r"one row of numbers in \[0, 1\]"):
        holm(values)


@pytest.mark.parametrize("sizes", [(3, 2), (0, 0)])
def test_not_paired(sizes):
    rows = [np.ones(size, dtype=bool) for size in sizes]
    for function in (mcnemar, paired_difference):
        with pytest.raises(ValueError, match="two rows of the same length"):
            function(*rows)


def test_coverage_is_a_share():
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_difference(*pair(1, 1, 1, 1), confidence=95)

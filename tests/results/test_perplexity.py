import math

import numpy as np
import pytest
from scipy.stats import norm

from robustbench_elliptical.results.perplexity import (
    perplexity,
    perplexity_interval,
    perplexity_ratio,
)


def texts(rng, documents, mean=4.0, spread=0.3):
    targets = rng.integers(50, 400, size=documents).astype(float)
    return targets * rng.normal(mean, spread, size=documents), targets


def test_closed_forms():
    assert perplexity(3 * math.log(7), 3) == pytest.approx(7)
    assert perplexity(1e6, 1) == math.inf
    with pytest.raises(ValueError, match="at least one target"):
        perplexity(0.0, 0)


def test_one_document_has_no_interval():
    one = np.array([5.0])
    assert perplexity_interval(one, one) is None
    assert perplexity_ratio(one, one, one, one) is None


def test_documents_alike_leave_no_doubt():
    targets = np.array([10.0, 20.0, 30.0])
    low, high = perplexity_interval(targets * math.log(50), targets)
    assert low == pytest.approx(50)
    assert high == pytest.approx(50)


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(200):
        losses, targets = texts(rng, 25)
        low, high = perplexity_interval(losses, targets, seed=seed, resamples=400)
        hits += low <= math.exp(4) <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_the_interval_is_efrons_by_his_formulas():
    rng = np.random.default_rng(6)
    targets = rng.integers(1, 400, size=12).astype(float)
    losses = targets * rng.exponential(1.0, size=12) ** 2
    drawn = rng.integers(0, 12, size=(40_000, 12))
    draws = np.sort(losses[drawn].sum(1) / targets[drawn].sum(1))
    others = (losses.sum() - losses) / (targets.sum() - targets)
    away = others.mean() - others
    skew = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    bias = norm.ppf((draws < losses.sum() / targets.sum()).mean())
    for confidence in (0.8, 0.95):
        ends = bias + norm.ppf([0.5 - confidence / 2, 0.5 + confidence / 2])
        wanted = np.exp(np.quantile(draws, norm.cdf(bias + ends / (1 - skew * ends))))
        plain = np.exp(np.quantile(draws, [0.5 - confidence / 2, 0.5 + confidence / 2]))
        found = perplexity_interval(losses, targets, resamples=40_000, confidence=confidence)
        assert found == pytest.approx(tuple(wanted), rel=0.02)
        assert plain[1] < 0.95 * wanted[1]  # what the percentiles alone would have said


def test_it_is_the_same_every_time_and_narrows():
    losses, targets = texts(np.random.default_rng(1), 400)
    wide = perplexity_interval(losses[:25], targets[:25], seed=3)
    assert wide == perplexity_interval(losses[:25], targets[:25], seed=3)
    assert wide != perplexity_interval(losses[:25], targets[:25], seed=4)
    narrow = perplexity_interval(losses, targets)
    assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)


def test_a_model_equals_itself():
    losses, targets = texts(np.random.default_rng(2), 9)
    assert perplexity_ratio(losses, targets, losses, targets) == (1, 1, 1, 1)


def test_pairing_finds_what_two_intervals_would_hide():
    rng = np.random.default_rng(3)
    losses, targets = texts(rng, 23)
    better = losses - targets * rng.normal(0.02, 0.005, size=23)
    ratio = perplexity_ratio(better, targets, losses, targets)
    assert ratio.high < 1
    assert ratio.ratio == pytest.approx(math.exp(-0.02), abs=0.004)
    assert ratio.p_value == pytest.approx(2 / 2001)
    one, other = perplexity_interval(losses, targets), perplexity_interval(better, targets)
    assert one.low < other.high


def test_exchanging_the_models_inverts_the_ratio():
    rng = np.random.default_rng(4)
    first, targets = texts(rng, 30)
    second = first + targets * rng.normal(0.01, 0.05, size=30)
    one = perplexity_ratio(first, targets, second, targets)
    other = perplexity_ratio(second, targets, first, targets)
    assert other.ratio == pytest.approx(1 / one.ratio)
    assert other.p_value == one.p_value
    assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low), rel=1e-12)


def test_equal_means_over_other_numbers_of_targets_are_no_equal_models():
    means = np.array([1.0, 3.0])
    one, other = np.array([10.0, 20.0]), np.array([20.0, 10.0])
    ratio = perplexity_ratio(means * one, one, means * other, other)
    assert ratio.ratio == pytest.approx(math.exp(70 / 30 - 50 / 30))
    assert ratio.low == pytest.approx(1)  # one document drawn twice: both have its mean
    assert ratio.p_value > 0.1


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_comparison_without_a_number_is_never_significant(broken):
    losses, targets = np.array([broken, 2.0, 5.0]), np.array([1.0, 2.0, 3.0])
    ratio = perplexity_ratio(losses, targets, losses + 1, targets)
    assert math.isnan(ratio.ratio)
    assert ratio.p_value > 0.9


def test_no_difference_is_rarely_called_one():
    rng = np.random.default_rng(5)
    called = 0
    for seed in range(200):
        losses, targets = texts(rng, 25)
        other = losses + targets * rng.normal(0, 0.05, size=25)
        found = perplexity_ratio(losses, targets, other, targets, seed=seed, resamples=400)
        called += found.p_value <= 0.05
    assert called / 200 <= 0.11

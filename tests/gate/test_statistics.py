"""The tests against oracles: full enumeration, closed forms, simulation."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

from robustbench_elliptical.gate.decisions import accuracy_evidence, decide, ratio_evidence
from robustbench_elliptical.gate.exact import SET_ASIDE, exceeds, score
from robustbench_elliptical.gate.power import documents_needed, samples_needed
from robustbench_elliptical.gate.ratio import LEAST_DOCUMENTS, ratio_test
from robustbench_elliptical.results import paired_difference

exact = cache(exceeds)


def _cells(samples):
    pairs = product(range(samples + 1), repeat=2)
    return np.array([(first, second) for first, second in pairs if first + second <= samples])


@pytest.mark.parametrize("margin", [-0.3, -0.01, 0.0, 0.02, 0.4])
def test_the_statistic_rises_with_the_first_count_and_falls_with_the_second(margin):
    for first, second in _cells(12):
        here = score(first, second, 12, margin)
        if first + second < 12:
            assert score(first + 1, second, 12, margin) > here
            assert score(first, second + 1, 12, margin) < here


def test_the_statistic_is_the_one_that_the_interval_inverts():
    before = np.array([True] * 9 + [False] * 3 + [True] * 28)
    after = np.array([False] * 9 + [True] * 3 + [True] * 28)
    interval = paired_difference(before, after, confidence=0.9)
    assert score(9, 3, 40, interval.low) == pytest.approx(1.6448536, abs=1e-6)
    assert score(9, 3, 40, interval.high) == pytest.approx(-1.6448536, abs=1e-6)


@pytest.mark.parametrize(("first", "second", "margin"), [(6, 1, 0.1), (2, 4, -0.2), (1, 0, 0.02)])
def test_the_p_value_is_the_largest_tail_found_by_enumeration(first, second, margin):
    samples = 16
    cells = _cells(samples)
    tail = cells[
        score(cells[:, 0], cells[:, 1], samples, margin)
        >= score(first, second, samples, margin) - 1e-9
    ]
    counts = np.column_stack([tail, samples - tail.sum(axis=1)])
    shares = np.linspace(max(0, -margin), (1 - margin) / 2, 2000)
    worst = max(
        multinomial.pmf(counts, samples, [q + margin, q, max(0, 1 - 2 * q - margin)]).sum()
        for q in shares
    )
    assert exceeds(first, second, samples, margin) == pytest.approx(worst, rel=1e-4)


def test_without_discordant_samples_the_p_value_has_a_closed_form():
    assert exceeds(0, 0, 200, -0.01) == pytest.approx(0.99**200 + SET_ASIDE, abs=1e-9)
    assert exceeds(0, 0, 200, 0.01) == 1.0
    assert exceeds(0, 0, 50, 0.0) == 1.0


@pytest.mark.parametrize("samples", [5, 12, 25])
@pytest.mark.parametrize("margin", [0.01, 0.1])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_exact_size_of_both_tests_is_at_most_alpha_for_few_samples(samples, margin, alpha):
    cells = _cells(samples)
    alarms = np.array([exact(int(b), int(c), samples, margin) <= alpha for b, c in cells])
    passes = np.array([exact(int(c), int(b), samples, -margin) <= alpha for b, c in cells])
    counts = np.column_stack([cells, samples - cells.sum(axis=1)])
    for gained in np.linspace(0, (1 - margin) / 2, 60):
        shares = [gained + margin, gained, max(0, 1 - 2 * gained - margin)]
        masses = multinomial.pmf(counts, samples, shares)
        assert masses[alarms].sum() <= alpha + 1e-5
        assert masses[passes].sum() <= alpha + 1e-5


@pytest.mark.parametrize("discordant", [0.0, 0.05, 0.1])
def test_the_recommended_number_catches_twice_the_allowed_drop_and_passes_none(discordant):
    max_drop, level = 0.05, 0.05
    start = round(discordant * 200)
    samples = samples_needed(start - start // 2, start // 2, 200, max_drop, level=level, power=0.8)
    generator = np.random.default_rng(0)
    planted = max(discordant, 2 * max_drop)
    worse = [planted / 2 + max_drop, planted / 2 - max_drop, 1 - planted]
    equal = [discordant / 2, discordant / 2, 1 - discordant]
    caught = generator.multinomial(samples, worse, size=200)
    passed = generator.multinomial(samples, equal, size=200)
    hits = [exact(int(b), int(c), samples, max_drop) <= level for b, c, _ in caught]
    shown = [exact(int(c), int(b), samples, -max_drop) <= level for b, c, _ in passed]
    assert np.mean(hits) >= 0.745  # two standard errors below 0.8
    assert np.mean(shown) >= 0.745


def test_a_drop_close_to_the_allowed_one_needs_more_than_there_are():
    assert samples_needed(300, 110, 10_000, 0.02, level=0.05, power=0.8) > 10_000
    assert samples_needed(300, 100, 10_000, 0.02, level=0.05, power=0.8) is None
    assert documents_needed((0.01, 0.0), 0.0199, 0.02, 100, 8, level=0.05, power=0.8) > 100
    assert documents_needed((0.01, 0.0), 0.02, 0.02, 100, 8, level=0.05, power=0.8) is None
    assert documents_needed((0.05, 0.0), 0.0, 0.02, 1, 8, level=0.05, power=0.8) == 41
    assert documents_needed((0.05, 2.0), 0.0, 0.02, 1, 8, level=0.05, power=0.8) == 58
    assert documents_needed((0.0, 0.0), 0.0, 0.02, 2, 8, level=0.05, power=0.8) == 8


@pytest.mark.parametrize("documents", [10, 40])
def test_the_ratio_test_holds_its_level_at_the_allowed_ratio(documents):
    generator = np.random.default_rng(0)
    runs, above, below = 500, 0, 0
    for run in range(runs):
        targets = generator.integers(100, 300, documents).astype(float)
        old = 3 * targets + generator.normal(0, 10, documents)
        new = old + targets * (np.log(1.02) + generator.normal(0, 0.03, documents))
        found = ratio_test(new, old, targets, 1.02, seed=run, resamples=399)
        above += found.above <= 0.05
        below += found.below <= 0.05
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert above / runs <= most
    assert below / runs <= most


def test_the_ratio_test_knows_an_unchanged_model_and_a_damaged_one():
    targets = np.linspace(100, 200, 20)
    old = 3 * targets
    same = ratio_evidence(old, old, targets, 0.02)
    worse = ratio_evidence(old, old + 0.2 * targets, targets, 0.02)
    better = ratio_evidence(old, old - 0.2 * targets, targets, 0.02)
    verdicts = [decide([each], 0.05, 0.8)[0].verdict for each in (same, worse, better)]
    assert verdicts == ["pass", "regressed", "improved"]
    skewed = old + targets * np.array([0.0] * 19 + [0.1])
    assert ratio_test(skewed, old, targets, 1.02).skewness > 1
    few = decide([ratio_evidence(old[:3], old[:3], targets[:3], 0.02)], 0.05, 0.8)[0]
    assert (few.verdict, few.needed) == ("inconclusive", LEAST_DOCUMENTS)


def test_verdicts_on_accuracies():
    before = np.array([True] * 900 + [False] * 100)

    def verdict(lost, gained):
        after = before.copy()
        after[:lost], after[900 : 900 + gained] = False, True
        return decide([accuracy_evidence(before, after, 0.01)], 0.05, 0.8)[0]

    assert verdict(0, 0).verdict == "pass"
    assert verdict(60, 0).verdict == "regressed"
    assert verdict(0, 60).verdict == "improved"
    unsure = verdict(40, 30)
    assert unsure.verdict == "inconclusive"
    assert unsure.needed > 1000


def test_holm_makes_many_checks_as_careful_as_one():
    before = np.ones(400, dtype=bool)
    after = before.copy()
    after[:10] = False
    alone = accuracy_evidence(before, after, 0.01)
    nothing = accuracy_evidence(before, before, 0.01)
    assert decide([alone], 0.05, 0.8)[0].verdict == "regressed"
    assert decide([alone] + [nothing] * 40, 0.05, 0.8)[0].verdict == "inconclusive"

"""The benchmark's small version: the whole gate, with Holm over its checks."""

import numpy as np

from benchmarks.gate_power import accuracy_row, perplexity_row, table

RUNS = 80
SLACK = 3 * np.sqrt(0.05 * 0.95 / RUNS)


def test_false_alarms_stay_below_alpha_and_a_planted_regression_is_caught():
    row = accuracy_row(0.05, 0.05, 3, RUNS)
    assert row.false_alarms <= 0.05 + SLACK
    assert row.false_passes <= 0.05 + SLACK
    assert row.caught >= 0.8 - 3 * np.sqrt(0.16 / RUNS)
    assert row.passed >= 0.8 - 3 * np.sqrt(0.16 / RUNS)


def test_few_samples_raise_no_more_false_alarms():
    row = accuracy_row(0.05, 0.1, 3, RUNS, samples=30)
    assert max(row.false_alarms, row.false_passes) <= 0.05 + SLACK


def test_a_planted_rise_of_perplexity_is_caught():
    row = perplexity_row(0.05, 0.05, 60)
    assert row.caught >= 0.8 - 3 * np.sqrt(0.16 / 60)
    assert row.what in table([row])

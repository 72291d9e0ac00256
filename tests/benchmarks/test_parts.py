import sys

import pytest
import torch

from benchmarks.passes import Pass, record, replay, require
from benchmarks.peers import torchattacks_pgd
from benchmarks.rows import QUICK, Row, Skipped
from benchmarks.timing import Budget, Ratio, compare


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def test_two_computations_take_turns_in_alternating_order(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("benchmarks.timing.time", clock)
    calls = []

    def work(name, seconds):
        calls.append(name)
        clock.now += seconds

    budget = Budget(seconds=0, least=3)
    ratio = compare(lambda: work("a", 2), lambda: work("b", 4), budget)
    assert ratio == Ratio(0.5, 0.5, 0.5, repetitions=3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"


def test_a_fast_computation_is_repeated_within_a_turn(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("benchmarks.timing.time", clock)
    calls = []

    def work(name):
        calls.append(name)
        clock.now += 1 / 64

    ratio = compare(lambda: work("a"), lambda: work("b"), Budget(seconds=1, least=3, most=10))
    assert ratio == Ratio(1, 1, 1, repetitions=8)
    assert "".join(calls) == "aabb" + ("aaaabbbb" + "bbbbaaaa") * 4


def test_a_slow_computation_is_not_repeated_for_a_fast_one(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("benchmarks.timing.time", clock)
    calls = []

    def work(name, seconds):
        calls.append(name)
        clock.now += seconds

    budget = Budget(seconds=0, least=2)
    ratio = compare(lambda: work("a", 8), lambda: work("b", 1 / 64), budget)
    assert ratio == Ratio(512, 512, 512, repetitions=2)
    assert "".join(calls) == "abb" + "abbbb" + "bbbba"


def test_floor_makes_the_recorded_passes():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    images = torch.rand(2, 3, 2, 2)

    def attack(logits):
        points = images.clone().requires_grad_()
        logits(points).sum().backward()
        with torch.no_grad():
            logits(images.repeat(3, 1, 1, 1)[:5])

    passes = record(model, attack)
    assert passes == [Pass(2, 1), Pass(5, 0)]
    require(passes, forwards=7, backwards=2)
    with pytest.raises(AssertionError, match="counted 7 and 2"):
        require(passes, forwards=7, backwards=7)
    seen = []
    model.register_forward_hook(lambda _, inputs, output: seen.append(len(output)))
    replay(model, images, passes)()
    assert seen == [2, 5]


@pytest.mark.parametrize(
    ("median", "target", "verdict"), [(1.0, 1.05, "met"), (1.06, 1.05, "missed"), (9, None, "-")]
)
def test_verdict(median, target, verdict):
    row = Row("a", "b", "c", Ratio(0.9, median, 10, 5), target, 8)
    assert row.verdict == verdict


def test_a_missing_peer_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchattacks", None)
    with pytest.raises(Skipped, match="needs torchattacks"):
        torchattacks_pgd(QUICK)

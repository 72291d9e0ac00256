from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import EmbeddedFashionMnist, ImageData, select


class Labelled(ImageData):
    def __init__(self, labels, ids):
        super().__init__("labelled", np.array(labels), ids, 6, image_shape=(1, 1, 1))

    def _read(self, indices: Sequence[int]):
        return np.zeros((len(indices), 1, 1, 1), np.uint8)


sets = st.lists(st.integers(0, 5), min_size=1, max_size=60).map(
    lambda labels: Labelled(labels, [f"s/{index}" for index in range(len(labels))])
)
seeds = st.integers(0, 2**32)


def chosen_ids(data, limit, seed):
    return {data.sample_ids[index] for index in select(data, limit, seed)}


@settings(deadline=None)
@given(sets, st.integers(1, 70), seeds)
def test_size_order_and_balance(data, limit, seed):
    chosen = select(data, limit, seed)
    assert len(chosen) == min(limit, len(data))
    assert chosen == sorted(set(chosen))
    taken = Counter(data.labels[chosen].tolist())
    there = Counter(data.labels.tolist())
    most = max(taken.values())
    assert all(taken[label] >= min(there[label], most - 1) for label in there)


@settings(deadline=None)
@given(sets, st.integers(1, 60), st.integers(1, 60), seeds)
def test_smaller_choice_lies_in_the_larger(data, first, second, seed):
    small, large = sorted((first, second))
    assert chosen_ids(data, small, seed) <= chosen_ids(data, large, seed)


@settings(deadline=None)
@given(sets, st.integers(1, 60), seeds, st.randoms())
def test_order_of_the_set_does_not_matter(data, limit, seed, random):
    order = list(range(len(data)))
    random.shuffle(order)
    shuffled = Labelled(data.labels[order], [data.sample_ids[index] for index in order])
    assert chosen_ids(shuffled, limit, seed) == chosen_ids(data, limit, seed)


def test_seeds_differ_and_every_sample_has_its_chance():
    data = Labelled([0] * 30 + [1] * 30, [f"s/{index}" for index in range(60)])
    counts = Counter(index for seed in range(300) for index in select(data, 20, seed))
    assert set(counts) == set(range(60))
    # Each is chosen with probability 1/3: mean 100, standard deviation 8.
    assert all(60 < count < 140 for count in counts.values())


def test_the_choice_is_pinned():
    assert select(EmbeddedFashionMnist(), 10, 0) == PINNED


def test_no_limit_is_everything():
    data = Labelled([0, 1, 0], ["a", "b", "c"])
    assert select(data, None, 0) == select(data, 3, 0) == select(data, 99, 0) == [0, 1, 2]


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_below_one_is_refused(limit):
    data = Labelled([0], ["a"])
    with pytest.raises(UsageError, match=rf"limit must be at least 1, got {limit}; leave it out"):
        select(data, limit, 0)


PINNED = [54, 57, 586, 592, 1022, 1105, 1218, 1962, 1970, 1973]

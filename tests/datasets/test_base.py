from collections.abc import Sequence

import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageData


class InMemory(ImageData):
    def __init__(self, images, labels, ids=None, num_classes=2):
        self.images = images
        ids = [f"s{index}" for index in range(len(labels))] if ids is None else ids
        super().__init__(
            "memory", np.asarray(labels), ids, num_classes, image_shape=images.shape[1:]
        )

    def _read(self, indices: Sequence[int]):
        return self.images[indices]


def test_batches_hand_out_what_was_asked_for_in_order():
    images = np.arange(5 * 3 * 2 * 2, dtype=np.uint8).reshape(5, 3, 2, 2)
    data = InMemory(images, [0, 1, 0, 1, 1])
    batches = list(data.batches([0, 2, 4], 2))
    assert [len(batch.labels) for batch in batches] == [2, 1]
    assert batches[0].sample_ids + batches[1].sample_ids == ("s0", "s2", "s4")
    assert batches[1].labels.tolist() == [1]
    np.testing.assert_array_equal(batches[0].images, images[[0, 2]] / np.float32(255))
    assert data.image_shape == (3, 2, 2)
    assert data.image_shape.channels == 3
    assert len(data) == 5


def test_no_indices_give_no_batches():
    data = InMemory(np.zeros((2, 1, 1, 1), np.uint8), [0, 1])
    assert list(data.batches([], 4)) == []


@pytest.mark.parametrize("indices", [[1, 0], [0, 0], [-1, 0], [2]])
def test_indices_that_do_not_increase_within_the_set_are_a_defect(indices):
    data = InMemory(np.zeros((2, 1, 1, 1), np.uint8), [0, 1])
    with pytest.raises(IndexError, match=r"increase strictly within 0\.\.1"):
        data.batches(indices, 4)


def test_batch_size_below_one_is_refused():
    data = InMemory(np.zeros((2, 1, 1, 1), np.uint8), [0, 1])
    with pytest.raises(UsageError, match="batch size must be at least 1, got 0"):
        data.batches([0], 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.01, 1.01, 255.0])
def test_pixels_outside_the_unit_range_name_the_sample(bad):
    images = np.full((3, 1, 2, 2), 0.5, np.float32)
    images[1, 0, 1, 1] = bad
    with pytest.raises(UsageError, match=r"finite and lie in \[0, 1\].* in sample s1; divide"):
        list(InMemory(images, [0, 1, 1]).batches(range(3), 3))


@pytest.mark.parametrize("label", [-1, 2])
def test_label_out_of_range_names_the_sample(label):
    with pytest.raises(UsageError, match=rf"labels must lie in 0..1, got {label} for sample s1"):
        InMemory(np.zeros((2, 1, 1, 1), np.uint8), [0, label])


def test_empty_set_is_refused():
    with pytest.raises(UsageError, match="has no samples"):
        InMemory(np.zeros((0, 1, 1, 1), np.uint8), [])


@pytest.mark.parametrize(
    ("ids", "problem"),
    [(["a", "a"], "got 'a' twice"), (["a", ""], "got ''"), (["a"], "got 1 ids for 2 samples")],
)
def test_ids_must_name_each_sample(ids, problem):
    with pytest.raises(UsageError, match=problem):
        InMemory(np.zeros((2, 1, 1, 1), np.uint8), [0, 1], ids)

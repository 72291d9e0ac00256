"""Edges of what is measured inside models: rounding, heads that cancel, models of text alone."""

import numpy as np
import pytest
import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.evaluation import EvaluationSettings
from robustbench_elliptical.evaluation.images.internals import Witness
from robustbench_elliptical.evaluation.images.internals.measures import class_attention
from robustbench_elliptical.evaluation.images.records import Unit
from robustbench_elliptical.evaluation.images.verification import TOLERANCE
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.results.pictures import read_pictures, write_pictures

STRANGER = ImageClassifier(
    nn.Sequential(nn.Flatten(), nn.Linear(4, 2)),
    input_shape=(1, 2, 2),
    num_classes=2,
    mean=[0.0],
    std=[1.0],
    name="stranger",
)


@pytest.mark.parametrize(("outside", "edge"), [(-TOLERANCE / 2, 0.0), (1 + TOLERANCE / 2, 1.0)])
def test_a_point_that_the_evaluator_tolerates_can_be_read_back(tmp_path, outside, edge):
    witness = Witness(STRANGER, ["a"], "0")
    batch = ImageBatch(torch.full((1, 1, 2, 2), 0.5), torch.tensor([0]), ("a",))
    points = batch.images.clone()
    points[0, 0, 0, 0] = outside
    right, predictions = np.array([True]), np.array([0])
    witness.see(Unit("stranger", "clean", None, 0.0), batch, batch.images, right, predictions)
    witness.see(Unit("stranger", "pgd", "linf", 0.6), batch, points, right, predictions)
    found = witness.pictures()
    write_pictures(tmp_path, found.arrays)
    attacked = read_pictures(tmp_path, found.records)["0-0/attacked"]
    assert attacked.flatten().tolist() == [edge, 0.5, 0.5, 0.5]
    assert points[0, 0, 0, 0] == torch.tensor(outside)


def test_heads_that_cancel_are_no_map():
    weights = torch.full((1, 2, 5, 5), 0.2)
    assert class_attention(weights, 1, 4) is not None
    weights[0, 0, 0, 1], weights[0, 1, 0, 1] = -0.1, 0.5
    assert (weights.mean(dim=1) >= 0).all()
    assert class_attention(weights, 1, 4) is None


def test_examples_are_refused_for_text_alone():
    settings = EvaluationSettings(examples=3)
    with pytest.raises(UsageError, match=r"examples .*is for images, and no model given is"):
        settings.check_tasks(["language-modelling"])
    settings.check_tasks(["language-modelling", "image-classification"])

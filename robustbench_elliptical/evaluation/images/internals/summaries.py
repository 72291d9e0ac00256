"""From what was seen in each image to the records of a result."""

import math

import torch
from scipy.stats import t as student
from torch import Tensor

from robustbench_elliptical.evaluation.images.internals.inside import Inside
from robustbench_elliptical.evaluation.images.internals.measures import attention_iou
from robustbench_elliptical.evaluation.images.records import Unit
from robustbench_elliptical.results import Estimate, InternalsRecord, MetricRecord

__all__ = ["estimate", "internals_record"]


def estimate(values: Tensor) -> Estimate:
    """Return the mean of one number an image, with Student's 95 % interval.

    Parameters
    ----------
    values
        Shape (images,), at least one.
    """
    count, mean = len(values), float(values.mean())
    if count == 1:
        return Estimate(mean=mean, low=mean, high=mean)
    half = float(student.ppf(0.975, count - 1)) * float(values.std()) / math.sqrt(count)
    return Estimate(mean=mean, low=mean - half, high=mean + half)


def internals_record(unit: Unit, inside: Inside, clean: Inside | None) -> InternalsRecord:
    """Return the record of a unit.

    Parameters
    ----------
    unit
        Model, attack and epsilon.
    inside
        Of the images as the attack left them.
    clean
        Of the same images before; none for the clean unit.
    """
    known = clean is not None and len(inside.maps) == len(clean.maps)
    overlaps = zip(inside.maps, clean.maps, strict=True) if clean is not None and known else ()
    return InternalsRecord(
        model=unit.model,
        attack=unit.attack,
        norm=unit.norm,
        epsilon=unit.epsilon,
        samples=len(inside.similarity),
        token_similarity=[estimate(each) for each in inside.similarity.unbind(dim=1)],
        attention_iou=[
            estimate(attention_iou(map_.flatten(1), before.flatten(1))) for map_, before in overlaps
        ],
        metric=[
            MetricRecord(
                block=block,
                mean=[[round(each, 6) for each in head] for head in metric.mean(dim=0).tolist()],
                change=[] if clean is None else _change(metric, clean.metrics[block]),
            )
            for block, metric in inside.metrics.items()
        ],
    )


def _change(metric: Tensor, clean: Tensor) -> list[Estimate]:
    moved = (metric - clean).abs().mean(dim=2)
    return [estimate(torch.as_tensor(head)) for head in moved.unbind(dim=1)]

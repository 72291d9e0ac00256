"""What a run says about the inside of one of its models, checked before anything is drawn of it."""

import math
from collections.abc import Iterator

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.images import ImageUnit
from robustbench_elliptical.reports.blocks.outcomes import rounded
from robustbench_elliptical.reports.blocks.pictures import StoredPicture
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.results import (
    Estimate,
    ImageClassificationResults,
    InternalsRecord,
    MetricRecord,
)

__all__ = ["model_internals", "model_pictures"]


def model_internals(
    run: Run, task: ImageClassificationResults, model: str
) -> dict[ImageUnit, InternalsRecord]:
    """Return the records about a model by attack and epsilon; none where no image was averaged.

    Raises
    ------
    UsageError
        If there are two about one attack and epsilon, or their numbers can't be.
    """
    found: dict[ImageUnit, InternalsRecord] = {}
    for record in task.internals:
        if record.model != model or record.samples < 1:
            continue
        unit = ImageUnit(record.attack, record.norm, rounded(record.epsilon))
        problem = "is there twice" if unit in found else _problem(record)
        if problem:
            raise UsageError(
                f"results in {run.folder} are broken: the inside of model {model!r} under "
                f"{unit.title!r} {problem}; evaluate again"
            )
        found[unit] = record
    return found


def model_pictures(
    run: Run, task: ImageClassificationResults, model: str
) -> dict[ImageUnit, list[StoredPicture]]:
    """Return the pictures of a model by attack and epsilon, in the order of the run."""
    found: dict[ImageUnit, list[StoredPicture]] = {}
    for record in task.pictures:
        if record.model == model:
            unit = ImageUnit(record.attack, record.norm, rounded(record.epsilon))
            found.setdefault(unit, []).append(StoredPicture(record, run.folder))
    return found


def _problem(record: InternalsRecord) -> str:
    if not all(math.isfinite(value) for value in _values(record)):
        return "has a number that is not finite"
    if len({metric.block for metric in record.metric}) != len(record.metric):
        return "has two metrics of one block"
    if not all(_regular(metric) for metric in record.metric):
        return "has a metric whose heads don't match"
    return ""


def _regular(metric: MetricRecord) -> bool:
    heads = len(metric.mean)
    sizes = {len(head) for head in metric.mean}
    return len(sizes) == 1 and 0 not in sizes and len(metric.change) in (0, heads)


def _values(record: InternalsRecord) -> Iterator[float]:
    estimates: list[Estimate] = [*record.token_similarity, *record.attention_iou]
    for metric in record.metric:
        estimates += metric.change
        for head in metric.mean:
            yield from head
    for estimate in estimates:
        yield from (estimate.mean, estimate.low, estimate.high)

"""The inside of the models, as numbers: one frame for each thing that was measured there."""

from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.blocks.images import CLEAN
from robustbench_elliptical.reports.blocks.outcomes import ABSENT, ROBUST
from robustbench_elliptical.results import Estimate, InternalsRecord

__all__ = [
    "MOST_MODELS",
    "inside_frames",
    "joint_strongest",
    "rows_at",
    "rows_of",
    "sizes",
    "strongest",
]

MOST_MODELS = 8
"""Models that get figures of their own: pictures, and the metric."""


_PLACE = ("model", "attack", "norm", "epsilon", "n")
_ENDS = ("mean", "low", "high")
_HEAD = ("block", "head")

Row = tuple[object, ...]


def inside_frames(block: ImageBlock) -> dict[str, pd.DataFrame]:
    """Return the frames; empty where nothing was measured. Blocks, heads, components are from 0.

    - token-similarity: `depth` blocks passed, mean, low, high
    - attention-iou: block, mean, low, high
    - metric: block, head, component, metric; of the clean images
    - metric-change: block, head, mean, low, high

    Each has model, attack, norm, epsilon and n, the images averaged over, too.
    """
    return {
        "token-similarity": _frame(block, _similarity, ("depth", *_ENDS)),
        "attention-iou": _frame(block, _iou, ("block", *_ENDS)),
        "metric": _frame(block, _metric, (*_HEAD, "component", "metric")),
        "metric-change": _frame(block, _change, (*_HEAD, *_ENDS)),
    }


def _frame(
    block: ImageBlock,
    rows: Callable[[InternalsRecord], Iterable[Row]],
    columns: tuple[str, ...],
) -> pd.DataFrame:
    found = [
        (entry.label, unit.attack, unit.norm or "", unit.epsilon, record.samples, *row)
        for unit in block.units()
        for entry in block.entries
        if (record := entry.internals.get(unit)) is not None
        for row in rows(record)
    ]
    return pd.DataFrame(found, columns=[*_PLACE, *columns])


def _similarity(record: InternalsRecord) -> Iterator[Row]:
    for depth, estimate in enumerate(record.token_similarity):
        yield depth, *_ends(estimate)


def _iou(record: InternalsRecord) -> Iterator[Row]:
    for block, estimate in enumerate(record.attention_iou):
        yield block, *_ends(estimate)


def _metric(record: InternalsRecord) -> Iterator[Row]:
    if record.attack != CLEAN:
        return
    for metric in record.metric:
        for head, components in enumerate(metric.mean):
            for component, value in enumerate(components):
                yield metric.block, head, component, value


def _change(record: InternalsRecord) -> Iterator[Row]:
    for metric in record.metric:
        for head, estimate in enumerate(metric.change):
            yield metric.block, head, *_ends(estimate)


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.mean, estimate.low, estimate.high


def rows_of(frame: pd.DataFrame, model: str, unit: ImageUnit) -> pd.DataFrame:
    """Return the rows about a model under an attack."""
    own = rows_at(frame, unit)
    return own[own["model"] == model]


def rows_at(frame: pd.DataFrame, unit: ImageUnit) -> pd.DataFrame:
    """Return the rows about an attack at an epsilon."""
    here = (frame["attack"] == unit.attack) & (frame["norm"] == (unit.norm or ""))
    return frame[here & (frame["epsilon"] == unit.epsilon)]


def sizes(rows: pd.DataFrame) -> str:
    """Return how many images were averaged over: ``n = 24``, or ``n = 20 to 24``."""
    least, most = int(rows["n"].min()), int(rows["n"].max())
    return f"n = {least}" if least == most else f"n = {least} to {most}"


def strongest(entry: ImageEntry, units: Iterable[ImageUnit], real: list[str]) -> ImageUnit | None:
    """Return the attack at its norm's largest epsilon under which the model is least accurate.

    Parameters
    ----------
    entry
        The model.
    units
        To choose from.
    real
        The attacks that are no mere control; others are left out, and so is what was not measured.
    """
    known = [unit for unit in units if unit.attack in real and unit in entry.codes]
    return min(_largest(known), key=lambda unit: _accuracy(entry, unit), default=None)


def joint_strongest(block: ImageBlock) -> ImageUnit | None:
    """Return the attack at which the insides of the models are compared.

    Of those that most models were looked into under, at the norm's largest epsilon, the one under
    which these are least accurate on average.
    """
    having = {
        unit: [entry for entry in block.entries if {unit} <= entry.internals.keys()]
        for unit in block.units()
        if unit.attack in block.real
    }
    most = max((len(entries) for entries in having.values()), default=0)
    if not most:
        return None
    known = [unit for unit, entries in having.items() if len(entries) == most]
    return min(
        _largest(known),
        key=lambda unit: sum(_accuracy(entry, unit) for entry in having[unit]),
    )


def _largest(units: list[ImageUnit]) -> list[ImageUnit]:
    ends = {
        unit.norm: max(each.epsilon for each in units if each.norm == unit.norm) for unit in units
    }
    return [unit for unit in units if unit.epsilon == ends[unit.norm]]


def _accuracy(entry: ImageEntry, unit: ImageUnit) -> float:
    codes = entry.codes[unit]
    reached = int((codes != ABSENT).sum())
    return int((codes == ROBUST).sum()) / reached if reached else 1.0

"""Per-sample records, gathered block by block, and the summaries counted from them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.results import SAMPLE_COLUMNS, AccuracySummary, wilson_interval

__all__ = ["Block", "Cost", "SampleTable", "Unit", "summarise", "worst_case"]

WORST_CASE = "worst-case"


class Unit(NamedTuple):
    """One cell of the evaluation: a model under an attack at an epsilon."""

    model: str
    attack: str
    norm: str | None
    epsilon: float


class Block(NamedTuple):
    """The outcomes of some samples of one unit; every field has one entry a sample."""

    sample_ids: Sequence[str]
    labels: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.str_]
    predictions: npt.NDArray[np.int64]
    """-1 where there is none."""
    distances: npt.NDArray[np.float64]
    forwards: npt.NDArray[np.int64]
    backwards: npt.NDArray[np.int64]
    reasons: Sequence[str]


class Cost(NamedTuple):
    """What a unit cost so far."""

    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0


class SampleTable:
    """All records of a run, in the order they were made."""

    def __init__(self) -> None:
        self._blocks: dict[Unit, list[Block]] = {}
        self._seconds: dict[Unit, float] = {}

    def add(self, unit: Unit, block: Block, seconds: float) -> None:
        """Append a block of samples to a unit."""
        self._blocks.setdefault(unit, []).append(block)
        self._seconds[unit] = self._seconds.get(unit, 0.0) + seconds

    def units(self) -> list[Unit]:
        """Return the units with records, in order of first appearance."""
        return list(self._blocks)

    def seconds(self, unit: Unit) -> float:
        """Return the wall time spent on a unit."""
        return self._seconds[unit]

    def outcomes(self, unit: Unit) -> npt.NDArray[np.str_]:
        """Return the outcome of every sample of a unit."""
        return np.concatenate([block.outcomes for block in self._blocks[unit]])

    def cost(self, unit: Unit) -> Cost:
        """Return the passes and the time of a unit."""
        blocks = self._blocks[unit]
        return Cost(
            int(sum(block.forwards.sum() for block in blocks)),
            int(sum(block.backwards.sum() for block in blocks)),
            self._seconds[unit],
        )

    def frame(self) -> pd.DataFrame:
        """Return one row a record, with the columns of `samples.csv`."""
        parts = [
            self._frame(unit, block) for unit, blocks in self._blocks.items() for block in blocks
        ]
        if not parts:
            return pd.DataFrame(columns=list(SAMPLE_COLUMNS))
        return pd.concat(parts, ignore_index=True)

    @staticmethod
    def _frame(unit: Unit, block: Block) -> pd.DataFrame:
        predictions = pd.array(block.predictions, dtype="Int64")
        predictions[block.predictions < 0] = pd.NA
        return pd.DataFrame(
            {
                "model": unit.model,
                "attack": unit.attack,
                "epsilon": unit.epsilon,
                "sample_id": list(block.sample_ids),
                "label": block.labels,
                "outcome": block.outcomes,
                "prediction": predictions,
                "distance": block.distances,
                "forwards": block.forwards,
                "backwards": block.backwards,
                "reason": list(block.reasons),
            },
            columns=list(SAMPLE_COLUMNS),
        )


def summarise(unit: Unit, outcomes: npt.NDArray[np.str_], cost: Cost) -> AccuracySummary:
    """Count the outcomes of a unit."""
    samples = len(outcomes)
    robust = int((outcomes == "robust").sum())
    interval = wilson_interval(robust, samples)
    return AccuracySummary(
        model=unit.model,
        attack=unit.attack,
        norm=unit.norm,
        epsilon=unit.epsilon,
        samples=samples,
        robust=robust,
        fooled=int((outcomes == "fooled").sum()),
        skipped=int((outcomes == "skipped").sum()),
        failed=int((outcomes == "failed").sum()),
        accuracy=robust / samples,
        low=interval.low,
        high=interval.high,
        forwards=cost.forwards,
        backwards=cost.backwards,
        seconds=cost.seconds,
    )


def worst_case(table: SampleTable, units: Iterable[Unit]) -> npt.NDArray[np.str_]:
    """Combine attacks sample by sample: fooled if any fooled it, else failed if any failed.

    After an interruption the units may differ in length: the samples that all have are combined.
    """
    outcomes = [table.outcomes(unit) for unit in units]
    shortest = min(len(each) for each in outcomes)
    stacked = np.stack([each[:shortest] for each in outcomes])
    combined: npt.NDArray[np.str_] = stacked[0].copy()
    combined[(stacked == "failed").any(axis=0)] = "failed"
    combined[(stacked == "fooled").any(axis=0)] = "fooled"
    return combined

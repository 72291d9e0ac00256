"""What the evaluation of every task looks like to the run that drives it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from robustbench_elliptical.results import TaskResults

__all__ = ["Advance", "TaskEvaluation"]

Advance = Callable[[str, int], None]
"""Called with what was just done and how many sample evaluations that were."""


class TaskEvaluation(ABC):
    """The models of one task on their data; built only from what was checked already."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Sample evaluations to do."""

    @property
    @abstractmethod
    def started(self) -> bool:
        """Whether anything was finished."""

    @abstractmethod
    def run(self, advance: Advance) -> None:
        """Evaluate; an interruption leaves what was finished."""

    @abstractmethod
    def results(self) -> TaskResults:
        """Return what was found so far."""

    @abstractmethod
    def rows(self) -> pd.DataFrame:
        """Return one row a sample evaluation, for the file of this task."""

    def pictures(self) -> Mapping[str, npt.NDArray[np.float16]]:
        """Return the arrays of the pictures that the results name; none unless a task has some."""
        return {}

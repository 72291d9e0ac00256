"""The result of an evaluation, version 2: everything a report, a gate or a rerun needs.

A result is a folder: `results.json` holds a `Results` record; `samples.csv` has one row for each
model, attack, epsilon and image, `documents.csv` one for each model, attack, rate and document.
Reports and gates read these files and nothing else.
"""

from typing import Annotated, Literal

from pydantic import Field

from robustbench_elliptical.results.image_classification import ImageClassificationResults
from robustbench_elliptical.results.language_modelling import LanguageModellingResults
from robustbench_elliptical.results.records import Finding, Record, RunRecord

__all__ = ["SCHEMA_VERSION", "Results", "TaskResults"]

SCHEMA_VERSION = 2

TaskResults = Annotated[
    ImageClassificationResults | LanguageModellingResults, Field(discriminator="task")
]
"""What was found about the models of one task."""


class Results(Record):
    """One evaluation."""

    schema_version: Literal[2] = 2
    """Version of this schema."""
    complete: bool
    """Whether every part ran; false after an interruption: the numbers hold for what is there."""
    run: RunRecord
    """When, where and how."""
    tasks: list[TaskResults] = Field(min_length=1)
    """What was found, one entry a task."""

    @property
    def images(self) -> ImageClassificationResults | None:
        """What was found about image classifiers, if there were any."""
        found = [each for each in self.tasks if isinstance(each, ImageClassificationResults)]
        return found[0] if found else None

    @property
    def language(self) -> LanguageModellingResults | None:
        """What was found about language models, if there were any."""
        found = [each for each in self.tasks if isinstance(each, LanguageModellingResults)]
        return found[0] if found else None

    @property
    def findings(self) -> list[Finding]:
        """The red flags of all tasks."""
        return [finding for task in self.tasks for finding in task.findings]

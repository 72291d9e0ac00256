"""A suite: a whole evaluation as a versioned TOML file that a user may copy and edit."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.toml import named_file, read_toml
from robustbench_elliptical.evaluation.settings import EvaluationSettings

__all__ = ["Suite", "load_suite"]


class Suite(BaseModel):
    """What a suite file states."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """What it is called."""
    version: int = Field(ge=1)
    """Raised when new numbers can't be compared with old ones."""
    description: str
    """One sentence."""
    evaluation: dict[str, Any]
    """Fields of `EvaluationSettings`; those left out have their defaults."""


def load_suite(name: str) -> Suite:
    """Load a shipped suite by name, or one from a path ending in ``.toml``.

    Raises
    ------
    UsageError
        If it is unknown, unreadable or not valid.
    """
    path = named_file(name, "attacks/suites", "suite")
    subject = f"suite {name}"
    suite = validated(Suite, read_toml(path, subject), subject)
    validated(EvaluationSettings, suite.evaluation, subject)
    return suite

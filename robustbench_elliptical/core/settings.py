"""Turn pydantic's validation report into the one sentence that a user gets."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from robustbench_elliptical.core.errors import UnknownNameError, UsageError

__all__ = ["validated"]

Settings = TypeVar("Settings", bound=BaseModel)


def validated(
    schema: type[Settings],
    values: Mapping[str, Any],
    subject: str,
    *,
    spelt: Callable[[str], str] | None = None,
) -> Settings:
    """Build `schema` from `values`.

    Parameters
    ----------
    schema
        The pydantic model to build.
    values
        Its fields, from a file or the command line.
    subject
        What they belong to, for the message ("attack pgd", "card my-card.toml").
    spelt
        How the user writes a field, where not by its name: as an option of the command line.

    Raises
    ------
    UsageError
        With the first problem: field, requirement and value; unknown fields get suggestions.
    """
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    # A misspelled required field is both missing and extra; the extra one says what to mend.
    problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    parts = [str(part) for part in problem["loc"]]
    place = ".".join([spelt(parts[0])] if parts and spelt else parts)
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        raise UnknownNameError(f"setting of {subject}", place, schema.model_fields)
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "is no known field; check its spelling or remove it"
    message = message[:1].lower() + message[1:]
    given = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
    joint = " " if spelt else ": "
    raise UsageError(f"{subject}{joint + place if place else ''}: {message}{given}")

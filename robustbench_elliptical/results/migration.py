"""Bring results of older versions of the schema to the present one."""

from typing import Any

from robustbench_elliptical.results.schema import SCHEMA_VERSION

__all__ = ["migrate"]

_MOVED_IN_2 = ("models", "data", "attacks", "summaries", "findings")


def migrate(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as the present version writes it; one it can't know is left as it is."""
    while document.get("schema_version") in _STEPS:
        document = _STEPS[document["schema_version"]](document)
    return document


def _from_1(document: dict[str, Any]) -> dict[str, Any]:
    """Version 1 knew one task, whose parts stood at the top."""
    task = {"task": document.get("task", "image-classification")}
    task |= {name: document[name] for name in _MOVED_IN_2 if name in document}
    rest = {
        name: value
        for name, value in document.items()
        if name not in (*_MOVED_IN_2, "task", "schema_version")
    }
    return {"schema_version": SCHEMA_VERSION, **rest, "tasks": [task]}


_STEPS = {1: _from_1}

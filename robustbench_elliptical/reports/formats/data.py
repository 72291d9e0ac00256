"""The numbers in full precision, for programs: CSV and JSON."""

import json
import math
from typing import Any

import pandas as pd

from robustbench_elliptical.reports.contents import Report, Section
from robustbench_elliptical.reports.contents.wording import records
from robustbench_elliptical.reports.formats.escaping import csv_text

__all__ = ["REPORT_VERSION", "render_csv", "render_json"]

REPORT_VERSION = 1
"""Of the layout of `report.json`."""


def render_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV; texts that a spreadsheet would compute begin with an apostrophe."""
    safe = pd.DataFrame(
        {name: [csv_text(value) for value in frame[name]] for name in frame.columns}
    )
    return safe.to_csv(index=False, lineterminator="\n")


def render_json(report: Report) -> str:
    """Return everything the report says as JSON."""
    document = {
        "report_version": REPORT_VERSION,
        "title": report.title,
        "runs": list(report.runs),
        "sections": [_section(section) for section in report.sections],
        "provenance": [
            {"title": each.title, "facts": {fact.term: fact.text for fact in each.facts}}
            for each in report.provenance
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _section(section: Section) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "warnings": list(section.warnings),
        "tables": {
            name: [_row(row) for row in records(frame)] for name, frame in section.frames.items()
        },
        "findings": [
            {
                "mark": each.mark,
                "severity": each.severity,
                "id": each.rule,
                "subject": each.subject,
                "evidence": each.evidence,
                "remedy": each.remedy,
            }
            for each in section.findings
        ],
        "figures": [
            {"name": each.name, "title": each.title, "description": each.description}
            for each in section.figures
        ],
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain

"""What a report says, before any format: tables, figures, findings, provenance."""

from robustbench_elliptical.reports.contents.building import build_report
from robustbench_elliptical.reports.contents.parts import (
    Cell,
    Column,
    Fact,
    Facts,
    Figure,
    NumberedFinding,
    Report,
    Section,
    Table,
)

__all__ = [
    "Cell",
    "Column",
    "Fact",
    "Facts",
    "Figure",
    "NumberedFinding",
    "Report",
    "Section",
    "Table",
    "build_report",
]

"""Tables and reports from results. Results only: no model and no attack is imported here."""

from robustbench_elliptical.reports.markdown import render_markdown
from robustbench_elliptical.reports.tables import (
    accuracy_table,
    attack_title,
    format_rate,
    percent,
    perplexity_table,
    perplexity_text,
)
from robustbench_elliptical.reports.writing import write_report

__all__ = [
    "accuracy_table",
    "attack_title",
    "format_rate",
    "percent",
    "perplexity_table",
    "perplexity_text",
    "render_markdown",
    "write_report",
]

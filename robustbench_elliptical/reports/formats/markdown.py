"""The report as Markdown, for a README or an issue."""

from robustbench_elliptical.reports.contents import Report
from robustbench_elliptical.reports.formats.environment import markdown_environment

__all__ = ["render_report_markdown"]


def render_report_markdown(report: Report) -> str:
    """Return the tables, the findings and links to the figures beside it."""
    return markdown_environment().get_template("report.md.j2").render(report=report)

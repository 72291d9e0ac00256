"""One page that holds everything: no script, no font, no picture is loaded from anywhere."""

from collections.abc import Mapping

from markupsafe import Markup

from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.reports.contents import Report
from robustbench_elliptical.reports.figures import Rendered
from robustbench_elliptical.reports.formats.environment import html_environment

__all__ = ["render_html"]


def render_html(report: Report, figures: Mapping[str, Rendered]) -> str:
    """Return the page; `figures` are by name."""
    css = (shipped("reports/templates") / "report.css").read_text(encoding="utf-8")
    drawings = {name: Markup(each.inline) for name, each in figures.items()}
    template = html_environment().get_template("report.html.j2")
    return template.render(report=report, css=Markup(css), drawings=drawings)

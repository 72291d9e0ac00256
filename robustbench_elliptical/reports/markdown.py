"""Render results as Markdown; every text from outside is escaped."""

import re

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports.tables import accuracy_table
from robustbench_elliptical.results import Results

__all__ = ["escape_markdown", "render_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#|~!&$])")


def escape_markdown(text: object) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def render_markdown(results: Results) -> str:
    """Return the tables of one run as Markdown."""
    environment = Environment(
        loader=FileSystemLoader(shipped("reports/templates")),
        finalize=escape_markdown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown: `finalize` escapes every value
    )
    template = environment.get_template("run.md.j2")
    rows = accuracy_table(results).to_dict("records")
    return template.render(results=results, rows=rows, format_epsilon=format_epsilon)

"""Render results as Markdown; every text from outside is escaped."""

import re

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports.tables import accuracy_table, format_rate, perplexity_table
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
    accuracies = [] if results.images is None else accuracy_table(results.images).to_dict("records")
    perplexities = (
        [] if results.language is None else perplexity_table(results.language).to_dict("records")
    )
    return template.render(
        results=results,
        accuracies=accuracies,
        perplexities=perplexities,
        format_epsilon=format_epsilon,
        format_rate=format_rate,
        number=_number,
        interval=_interval,
    )


def _number(value: float | None) -> str:
    return "failed" if value is None or value != value else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or low != low:
        return "none"
    return f"{low:.3f} to {high:.3f}"

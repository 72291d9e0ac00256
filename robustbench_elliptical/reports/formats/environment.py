"""The templates, each with the escaping of its format."""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.reports.formats.escaping import latex, markdown, plain

__all__ = ["html_environment", "latex_environment", "markdown_environment"]


class _Raw(str):
    """A text of ours that is written as it is."""

    __slots__ = ()


def html_environment() -> Environment:
    """Return the environment of HTML: everything is escaped that is not markup of ours."""
    return _environment(_visible, autoescape=True)


def markdown_environment() -> Environment:
    """Return the environment of Markdown: every value is escaped."""
    return _environment(markdown)


def latex_environment() -> Environment:
    """Return the environment of LaTeX, with delimiters that LaTeX doesn't use."""
    return _environment(
        latex,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )


def _visible(value: object) -> object:
    return value if isinstance(value, Markup) else plain(value)


def _environment(
    escape: Callable[[object], object], *, autoescape: bool = False, **delimiters: Any
) -> Environment:
    made = Environment(
        loader=FileSystemLoader(shipped("reports/templates")),
        finalize=lambda value: value if isinstance(value, _Raw) else escape(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=autoescape,  # Markdown and LaTeX: `finalize` escapes every value
        **delimiters,
    )
    made.globals["raw"] = _Raw
    return made

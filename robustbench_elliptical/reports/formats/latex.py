"""The report as LaTeX: a document that compiles as it is, and its tables to paste one by one."""

from robustbench_elliptical.reports.contents import Report, Section, Table
from robustbench_elliptical.reports.formats.environment import latex_environment

__all__ = ["column_types", "render_latex", "render_latex_table"]

_LONG = 60
"""Letters from which a column of text breaks its lines."""


def render_latex(report: Report) -> str:
    """Return the document; it reads its tables and figures from the folders beside it."""
    return latex_environment().get_template("report.tex.j2").render(report=report)


def render_latex_table(section: Section, table: Table) -> str:
    """Return a table in booktabs style, with its notes and the findings that stand in it."""
    template = latex_environment().get_template("table.tex.j2")
    return template.render(section=section, table=table, columns=column_types(table))


def column_types(table: Table) -> list[str]:
    """Return the kind of each column: ``number``, ``text``, or ``long`` text that wraps."""
    kinds = []
    for place, column in enumerate(table.columns):
        longest = max((len(row[place].text) for row in table.rows), default=0)
        if column.numeric:
            kinds.append("number")
        else:
            kinds.append("long" if longest > _LONG else "text")
    return kinds

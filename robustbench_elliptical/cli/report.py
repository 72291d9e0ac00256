"""`elliptical-robust report`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Result folders that eval wrote."),
    ],
    output: Annotated[Path, typer.Option(help="New folder for the report.")],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compare every other model with this one. Default: every two models.",
        ),
    ] = None,
) -> None:
    """Write a report about one or more evaluations.

    Tables and figures in report.html (one file that holds everything), report.md, report.tex,
    report.json, tables/ (CSV, LaTeX) and figures/ (PNG, SVG, PDF). Models on the same data are
    compared sample by sample, also across runs; published numbers stand beside where they match.
    """
    from robustbench_elliptical.reports import write_report

    files = write_report(runs, output, against=against)
    typer.echo(f"Report: {output / 'report.html'} and {len(files) - 1} more files in {output}")

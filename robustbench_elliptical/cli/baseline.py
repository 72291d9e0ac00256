"""`elliptical-robust baseline`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["baseline"]


def baseline(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A result folder that eval wrote.")],
    output: Annotated[Path, typer.Option(help="New file, JSON; compressed if it ends in .gz.")],
) -> None:
    """Freeze a run: what check holds new checkpoints against.

    One file with the outcome of every sample, all settings, and the hashes of data and weights.
    """
    from robustbench_elliptical.gate import freeze, write_baseline
    from robustbench_elliptical.results import read_results

    write_baseline(output, freeze(read_results(run)))
    typer.echo(f"Baseline: {output}")

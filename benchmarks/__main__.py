"""``python -m benchmarks``: run benchmarks and print one table."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.evaluator import evaluator_overhead
from benchmarks.floors import fgsm_floor, pgd_floor, spsa_floor
from benchmarks.formulas import formula_floor
from benchmarks.forward import elliptical_forward
from benchmarks.peers import torchattacks_pgd, torchattacks_spsa
from benchmarks.perplexity import stride_one, word_swap_speed
from benchmarks.rows import FULL, QUICK, Row, Size, Skipped
from benchmarks.tables import markdown, show
from robustbench_elliptical.core.errors import UnknownNameError, UsageError

__all__ = ["BENCHMARKS", "main"]

BENCHMARKS: dict[str, Callable[[Size], list[Row]]] = {
    "fgsm": fgsm_floor,
    "pgd": pgd_floor,
    "spsa": spsa_floor,
    "elliptical": elliptical_forward,
    "formulas": formula_floor,
    "torchattacks-pgd": torchattacks_pgd,
    "torchattacks-spsa": torchattacks_spsa,
    "evaluator": evaluator_overhead,
    "stride-1": stride_one,
    "word-swap": word_swap_speed,
}


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME ...]", help=f"Which ones; all if none: {', '.join(BENCHMARKS)}."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Tiny sizes, to see that it runs; the ratios are noise and not judged."
        ),
    ] = False,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Also write it as Markdown.")
    ] = None,
) -> None:
    """Measure the toolkit against the passes it must make and against peers, side by side."""
    for name in names or ():
        if name not in BENCHMARKS:
            raise UnknownNameError("benchmark", name, BENCHMARKS)
    rows: list[Row] = []
    notes: list[str] = []
    for name in names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            made = BENCHMARKS[name](QUICK if quick else FULL)
        except Skipped as reason:
            notes.append(f"{name} was skipped: {reason}")
            continue
        made = [replace(row, target=None) for row in made] if quick else made
        for row in made:
            print(f"  {row.measured}: {row.cells()[3]}", file=sys.stderr, flush=True)
        rows += made
    show(rows, notes)
    if markdown_file is not None:
        markdown_file.write_text(markdown(rows, notes), encoding="utf-8")


def run() -> None:
    """Run the command line."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command()(main)
    try:
        app(prog_name="python -m benchmarks")
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run()

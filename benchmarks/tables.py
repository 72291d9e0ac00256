"""The table, for a terminal and as Markdown."""

import os
import platform
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

__all__ = ["COLUMNS", "conditions", "markdown", "show"]

COLUMNS = (
    "benchmark",
    "measured",
    "floor or peer",
    "time ratio [quartiles]",
    "target",
    "verdict",
    "n",
)


def conditions() -> str:
    """Return what the times depend on, as a sentence."""
    return (
        f"torch {torch.__version__} with {torch.get_num_threads()} threads on "
        f"{os.cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}."
    )


def show(rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Print the table and what was left out; where no terminal is, as wide as its text."""
    table = Table(*COLUMNS, caption=conditions(), show_lines=True)
    for row in rows:
        table.add_row(*row.cells())
    console = Console(markup=False)
    if not console.is_terminal:
        console = Console(markup=False, width=240)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


def markdown(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Return the same as Markdown."""
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *(row.cells() for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, conditions(), *notes]) + "\n"

"""A progress bar with an ETA on standard error; silent when that is no terminal, or on demand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["progress_bar"]

Advance = Callable[[str, int, int], None]


@contextmanager
def progress_bar(unit: str, *, quiet: bool) -> Iterator[Advance]:
    """Show a bar while the context lasts.

    Yields a function that takes a description, how many units are done, and how many there are.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    shown = console.is_terminal and not quiet
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("loading", total=None)

        def advance(description: str, done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total)

        yield advance

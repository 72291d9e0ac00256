"""Run an evaluation for the command line: progress, output folder, table."""

import shlex
import sys
from datetime import datetime
from itertools import chain, count
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from robustbench_elliptical.cli.progress import progress_bar
from robustbench_elliptical.cli.tables import accuracy_tables, perplexity_tables
from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.reports import format_rate, render_markdown
from robustbench_elliptical.results import Finding, Results, check_writable, write_results

__all__ = ["run_evaluation"]


def run_evaluation(
    settings: EvaluationSettings, output: Path | None, *, as_json: bool, quiet: bool
) -> bool:
    """Evaluate, write the results, print them; returns whether every part ran."""
    folder = _free(_default_folder(settings)) if output is None else output
    check_writable(folder)
    command = shlex.join(["elliptical-robust", *sys.argv[1:]])
    with progress_bar("evaluations", quiet=quiet) as advance:
        evaluation = evaluate(settings, command=command, on_progress=advance)
    results = evaluation.results
    # Another run may have taken the folder meanwhile: a finished evaluation is never thrown away.
    folder = _free(folder)
    write_results(folder, evaluation, render_markdown)
    if as_json:
        typer.echo(results.model_dump_json(indent=2))
    else:
        _print(results, folder)
    if not results.complete:
        typer.echo(f"Interrupted: what was finished is in {folder}", err=True)
    return results.complete


def _default_folder(settings: EvaluationSettings) -> Path:
    words = "-".join([*settings.chosen_models()[:2], *settings.attacks])
    slug = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in words)
    return Path("runs") / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{slug[:80]}"


def _free(folder: Path) -> Path:
    """Return `folder`, or the first of folder-2, folder-3, ... that does not exist."""
    numbers = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(each for each in chain([folder], numbers) if not each.exists())


def _print(results: Results, folder: Path) -> None:
    console = Console()
    tables = [] if results.images is None else accuracy_tables(results.images)
    tables += [] if results.language is None else perplexity_tables(results.language)
    for table in tables:
        shown = console if console.is_terminal else Console(width=60 + 40 * len(table.columns))
        shown.print(table)
    for finding in results.findings:
        console.print(_finding(finding), soft_wrap=True)
    console.print(Text(f"Results: {folder}"), soft_wrap=True)


def _finding(finding: Finding) -> Text:
    place = [finding.model, finding.attack or ""]
    place += [format_epsilon(finding.epsilon)] if finding.epsilon else []
    place += [format_rate(finding.rate)] if finding.rate else []
    subject = " ".join(part for part in place if part)
    return Text(f"{finding.severity}: {subject}: {finding.evidence} {finding.remedy}")

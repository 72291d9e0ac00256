"""`elliptical-robust check`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from robustbench_elliptical.evaluation import EvaluationSettings
    from robustbench_elliptical.gate import Baseline, GateReport
    from robustbench_elliptical.gate.cells import TaskName

__all__ = ["check"]


def check(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="The new checkpoint, as eval --model takes it: NAME,checkpoint=FILE, a card, ...",
        ),
    ],
    baseline: Annotated[Path, typer.Option(help="File that baseline wrote.")],
    against: Annotated[
        str | None,
        typer.Option(
            help="Model of the baseline. Default: the only one, or that of the same name."
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            help='TOML with [gate] max_drop, max_increase, alpha, ... Default: "1.0 pp", "2 %".'
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Where the data lie now, as eval --data; they must be the same."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="A torch device. Default: the baseline's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write Markdown, for a merge request's comment.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Stop a checkpoint that got less robust than a baseline.

    Evaluates it on the baseline's samples with its seeds and attacks, and decides for each attack
    and epsilon: pass, regressed, improved or inconclusive.

    Exit codes: 0 pass, 1 regressed (or findings, if the rules say so), 2 usage or bad input,
    3 inconclusive or incomplete.
    """
    from robustbench_elliptical.cli.progress import progress_bar
    from robustbench_elliptical.evaluation import evaluate
    from robustbench_elliptical.gate import (
        EXIT_CODES,
        check_rules,
        judge,
        read_baseline,
        read_rules,
        reference_model,
    )
    from robustbench_elliptical.gate.storage import check_place
    from robustbench_elliptical.models import parse_model

    for path in (junit, markdown):
        if path is not None:
            check_place(path)
    frozen, limits = read_baseline(baseline), read_rules(rules)
    check_rules(limits, frozen)
    choice = parse_model(model)
    stated = {
        key: value for key, value in (("data", data), ("device", device)) if value is not None
    }
    settings = _settings(frozen, choice.task, model, stated, f"baseline {baseline}")
    _check_device(settings.device)
    checkpoint = choice.load(device=settings.device)
    reference = reference_model(frozen, choice.task, checkpoint.name, against)
    try:
        with progress_bar("evaluations", quiet=quiet) as advance:
            evaluation = evaluate(settings, models=[checkpoint], on_progress=advance)
    except KeyboardInterrupt:
        typer.echo("Interrupted before anything was finished: nothing is decided.", err=True)
        raise typer.Exit(EXIT_CODES["incomplete"]) from None
    report = judge(frozen, evaluation, reference, limits)
    _write(report, junit, markdown)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        _print(report)
    _tell_github(report, as_json=as_json)
    raise typer.Exit(report.exit_code)


def _settings(
    frozen: "Baseline", task: "TaskName", model: str, stated: dict[str, str], subject: str
) -> "EvaluationSettings":
    """Return the settings of the baseline for one model of one of its tasks."""
    from robustbench_elliptical.core.settings import validated
    from robustbench_elliptical.evaluation import EvaluationSettings
    from robustbench_elliptical.evaluation.settings import option_name

    kept = validated(EvaluationSettings, frozen.results.run.settings or {}, subject)
    attacks = kept.chosen_attacks(task) or ("clean",)
    chosen = {
        "models": [model],
        "attacks": attacks,
        "data": [kept.chosen_data(task)],
        "examples": 0,
    }
    return validated(
        EvaluationSettings, {**kept.model_dump(), **chosen, **stated}, "option", spelt=option_name
    )


def _check_device(name: str) -> None:
    import torch

    from robustbench_elliptical.core.errors import UsageError

    try:
        torch.ones(1, device=torch.device(name)).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise UsageError(
            f"device must be one that torch can compute on here, got {name!r}; choose one such as "
            "cpu by --device"
        ) from None


def _write(report: "GateReport", junit: Path | None, markdown: Path | None) -> None:
    from robustbench_elliptical.gate.outputs.junit import render_junit
    from robustbench_elliptical.gate.outputs.markdown import render_markdown_comment
    from robustbench_elliptical.gate.storage import write_whole

    if junit is not None:
        write_whole(junit, render_junit(report))
    if markdown is not None:
        write_whole(markdown, render_markdown_comment(report).encode())


def _print(report: "GateReport") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from robustbench_elliptical.gate.outputs.escaping import one_line
    from robustbench_elliptical.gate.outputs.messages import amount, change, messages

    console = Console()
    table = Table(title=Text(one_line(f"{report.model} against {report.baseline_model}")))
    for column in ("check", "n", "baseline", "now", "change", "verdict", "reason"):
        table.add_column(column)
    for each in report.checks:
        before, after = amount(each, each.baseline), amount(each, each.checked)
        cells = (each.title, str(each.samples), before, after, change(each), each.verdict)
        table.add_row(*(Text(one_line(cell)) for cell in (*cells, each.reason)))
    shown = console if console.is_terminal else Console(width=160)
    if report.checks:
        shown.print(table)
    for said in messages(report):
        if said.kind not in ("regressed", "inconclusive"):
            line = one_line(f"{said.level}: {said.title}: {said.text}")
            console.print(Text(line), soft_wrap=True)
    console.print(Text(f"Gate: {report.outcome}"), soft_wrap=True)


def _tell_github(report: "GateReport", *, as_json: bool) -> None:
    """Annotate the commit and add to the step's summary, when in GitHub Actions."""
    from robustbench_elliptical.gate.outputs.github import annotations
    from robustbench_elliptical.gate.outputs.markdown import render_markdown_comment

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for line in annotations(report):
        typer.echo(line, err=as_json)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(render_markdown_comment(report))
        except OSError as error:
            # The decision stands: a summary that can't be written must not change the exit code.
            typer.echo(f"Warning: cannot write the step summary: {error.strerror}", err=True)

"""The tables of a result for a terminal: a column a model, or a row where there are many."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rich.table import Table
from rich.text import Text

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports import attack_title, format_rate, percent, perplexity_text
from robustbench_elliptical.results import (
    AccuracySummary,
    ImageClassificationResults,
    LanguageModellingResults,
    PerplexitySummary,
)

__all__ = ["accuracy_tables", "perplexity_tables"]

_MOST_COLUMNS = 4
"""Models that a terminal shows side by side."""
_NOT_RUN = "not run"

Summary = TypeVar("Summary", AccuracySummary, PerplexitySummary)


def accuracy_tables(results: ImageClassificationResults) -> list[Table]:
    """Return attacks by models with their cost; of many models, models by attacks."""
    samples = max((data.samples for data in results.data), default=0)
    title = f"Accuracy % [Wilson 95 % interval], n = {samples}"
    names = [model.name for model in results.models]
    if len(names) <= _MOST_COLUMNS:
        return [_accuracy_and_cost(results, names, f"{title}; passes per sample")]
    clean = {each.model: {each.attack: each} for each in results.summaries if each.norm is None}
    balls: dict[tuple[str, float], dict[str, dict[str, AccuracySummary]]] = {}
    for each in results.summaries:
        if each.norm is not None:
            ball = balls.setdefault((each.norm, each.epsilon), {})
            ball.setdefault(each.model, dict(clean.get(each.model, {})))[each.attack] = each
    if not balls:
        return [_by_model(title, names, clean, percent)]
    return [
        _by_model(f"{title}, {norm} epsilon {format_epsilon(epsilon)}", names, cells, percent)
        for (norm, epsilon), cells in balls.items()
    ]


def perplexity_tables(results: LanguageModellingResults) -> list[Table]:
    """Return rates by models, for all targets and for the clean ones only.

    Of many models, models by rates, a table an attack.
    """
    documents = max((each.documents for each in results.summaries), default=0)
    everything = _perplexities(
        results,
        f"Perplexity [bootstrap 95 % interval], all targets, {documents} documents",
        lambda each: perplexity_text(each) + _fewer(each, documents),
    )
    clean = _perplexities(
        results,
        "The same text, clean targets only: what the contaminated context costs",
        lambda each: (
            "failed"
            if each.clean_target_perplexity is None
            else f"{each.clean_target_perplexity:.2f}{_fewer(each, documents)}"
        ),
    )
    return [*everything, *clean] if results.attacks else everything


def _accuracy_and_cost(
    results: ImageClassificationResults, models: Iterable[str], title: str
) -> Table:
    table = Table(title=Text(title))
    table.add_column("attack, epsilon")
    for model in models:
        table.add_column(Text(model), justify="right")
        table.add_column("forward + backward", justify="right", style="dim")
    cells = {(attack_title(each), each.model): each for each in results.summaries}
    for row_title in dict.fromkeys(title for title, _ in cells):
        row: list[Text] = [Text(row_title)]
        for model in models:
            summary = cells.get((row_title, model))
            if summary is None:
                row += [Text(_NOT_RUN), Text("")]
                continue
            cost = (summary.forwards / summary.samples, summary.backwards / summary.samples)
            row += [Text(percent(summary)), Text(f"{cost[0]:.0f} + {cost[1]:.0f}")]
        table.add_row(*row)
    return table


def _perplexities(
    results: LanguageModellingResults, title: str, text: Callable[[PerplexitySummary], str]
) -> list[Table]:
    names = [model.name for model in results.models]
    if len(names) <= _MOST_COLUMNS:
        return [_by_attack(results, names, title, text)]
    unattacked = [each for each in results.summaries if not each.rate]
    clean = {each.model: {each.attack: each} for each in unattacked}
    attacks: dict[str, dict[str, dict[str, PerplexitySummary]]] = {}
    for each in results.summaries:
        if each.rate:
            cells = attacks.setdefault(each.attack, {})
            row = cells.setdefault(each.model, dict(clean.get(each.model, {})))
            row[format_rate(each.rate)] = each
    if not attacks:
        return [_by_model(title, names, clean, text)]
    return [_by_model(f"{title}; {attack}", names, attacks[attack], text) for attack in attacks]


def _by_attack(
    results: LanguageModellingResults,
    models: Iterable[str],
    title: str,
    text: Callable[[PerplexitySummary], str],
) -> Table:
    table = Table(title=Text(title))
    table.add_column("attack, rate")
    for model in models:
        table.add_column(Text(model), justify="right")
    cells = {(_title(each), each.model): each for each in results.summaries}
    for row in dict.fromkeys(title for title, _ in cells):
        found = (cells.get((row, model)) for model in models)
        table.add_row(Text(row), *(_NOT_RUN if each is None else text(each) for each in found))
    return table


def _by_model(
    title: str,
    models: Iterable[str],
    rows: Mapping[str, Mapping[str, Summary]],
    text: Callable[[Summary], str],
) -> Table:
    """Return a table with a row a model; `rows` has the cells by model and column."""
    table = Table(title=Text(title))
    table.add_column("model", overflow="fold")
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    for column in columns:
        table.add_column(Text(column), justify="right")
    for model in models:
        row = rows.get(model, {})
        cells = (text(row[column]) if column in row else _NOT_RUN for column in columns)
        table.add_row(Text(model), *cells)
    return table


def _fewer(summary: PerplexitySummary, documents: int) -> str:
    """Return how many documents a number is of, where the title says another number."""
    return "" if summary.documents == documents else f" ({summary.documents} documents)"


def _title(summary: PerplexitySummary) -> str:
    return summary.attack if not summary.rate else f"{summary.attack} {format_rate(summary.rate)}"

"""The tables of a result for a terminal."""

from collections.abc import Callable

from rich.table import Table
from rich.text import Text

from robustbench_elliptical.reports import attack_title, format_rate, percent, perplexity_text
from robustbench_elliptical.results import (
    ImageClassificationResults,
    LanguageModellingResults,
    PerplexitySummary,
)

__all__ = ["accuracy_table", "perplexity_tables"]


def accuracy_table(results: ImageClassificationResults) -> Table:
    """Return attacks by models."""
    samples = max((data.samples for data in results.data), default=0)
    table = Table(
        title=Text(f"Accuracy % [Wilson 95 % interval], n = {samples}; passes per sample")
    )
    table.add_column("attack, epsilon")
    for model in results.models:
        table.add_column(Text(model.name), justify="right")
        table.add_column("forward + backward", justify="right", style="dim")
    cells = {(attack_title(each), each.model): each for each in results.summaries}
    for title in dict.fromkeys(title for title, _ in cells):
        row: list[Text] = [Text(title)]
        for model in results.models:
            summary = cells.get((title, model.name))
            if summary is None:
                row += [Text("not run"), Text("")]
                continue
            cost = (summary.forwards / summary.samples, summary.backwards / summary.samples)
            row += [Text(percent(summary)), Text(f"{cost[0]:.0f} + {cost[1]:.0f}")]
        table.add_row(*row)
    return table


def perplexity_tables(results: LanguageModellingResults) -> list[Table]:
    """Return models by rates, for all targets and for the clean ones only."""
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
    return [everything, clean] if results.attacks else [everything]


def _perplexities(
    results: LanguageModellingResults, title: str, text: Callable[[PerplexitySummary], str]
) -> Table:
    table = Table(title=Text(title))
    table.add_column("attack, rate")
    for model in results.models:
        table.add_column(Text(model.name), justify="right")
    cells = {(_title(each), each.model): each for each in results.summaries}
    for row in dict.fromkeys(title for title, _ in cells):
        found = (cells.get((row, model.name)) for model in results.models)
        table.add_row(Text(row), *("not run" if each is None else text(each) for each in found))
    return table


def _fewer(summary: PerplexitySummary, documents: int) -> str:
    """Return how many documents a number is of, where the title says another number."""
    return "" if summary.documents == documents else f" ({summary.documents} documents)"


def _title(summary: PerplexitySummary) -> str:
    return summary.attack if not summary.rate else f"{summary.attack} {format_rate(summary.rate)}"

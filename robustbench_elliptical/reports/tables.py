"""The tables of a result as data frames: one row a cell, numbers as numbers."""

import pandas as pd

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.results import (
    AccuracySummary,
    ImageClassificationResults,
    LanguageModellingResults,
    PerplexitySummary,
)

__all__ = [
    "accuracy_table",
    "attack_title",
    "format_rate",
    "percent",
    "perplexity_table",
    "perplexity_text",
]


def accuracy_table(results: ImageClassificationResults) -> pd.DataFrame:
    """Return the summaries with costs per sample.

    Columns: model, attack, norm, epsilon (text, in [0, 1] pixels), accuracy, low, high (shares),
    samples, fooled, skipped, failed, forwards and backwards (per sample), seconds.
    """
    rows = [
        {
            "model": each.model,
            "attack": each.attack,
            "norm": each.norm or "",
            "epsilon": _epsilon(each),
            "accuracy": each.accuracy,
            "low": each.low,
            "high": each.high,
            "samples": each.samples,
            "fooled": each.fooled,
            "skipped": each.skipped,
            "failed": each.failed,
            "forwards": each.forwards / each.samples,
            "backwards": each.backwards / each.samples,
            "seconds": each.seconds,
        }
        for each in results.summaries
    ]
    return pd.DataFrame(rows)


def perplexity_table(results: LanguageModellingResults) -> pd.DataFrame:
    """Return the summaries: the fields of `PerplexitySummary`, one row each."""
    return pd.DataFrame([each.model_dump() for each in results.summaries])


def _epsilon(summary: AccuracySummary) -> str:
    if summary.norm is None:
        return ""
    return format_epsilon(summary.epsilon) if summary.norm == "linf" else f"{summary.epsilon:g}"


def attack_title(summary: AccuracySummary) -> str:
    """Return ``pgd 8/255`` or ``pgd l2 0.5``: an attack as a row's title."""
    if summary.norm is None:
        return summary.attack
    norm = "" if summary.norm == "linf" else f"{summary.norm} "
    return f"{summary.attack} {norm}{_epsilon(summary)}"


def percent(summary: AccuracySummary) -> str:
    """Return an accuracy with its interval: ``61.5 [54.6, 68.0]``, in percent."""
    return f"{summary.accuracy:.1%} [{summary.low:.1%}, {summary.high:.1%}]".replace("%", "")


def format_rate(rate: float) -> str:
    """Return a rate in percent: ``2.5 %``."""
    return f"{100 * rate:.6g} %"


def perplexity_text(summary: PerplexitySummary) -> str:
    """Return a perplexity with its interval, as far as there are: ``61.5 [54.6, 68.0]``."""
    if summary.perplexity is None:
        return "failed"
    if summary.low is None or summary.high is None:
        return f"{summary.perplexity:.2f}"
    return f"{summary.perplexity:.2f} [{summary.low:.2f}, {summary.high:.2f}]"

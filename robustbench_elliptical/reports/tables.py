"""The accuracy table as a data frame: one row a model, attack and epsilon, numbers as numbers."""

import pandas as pd

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.results import Results, Summary

__all__ = ["accuracy_table", "attack_title", "percent"]


def accuracy_table(results: Results) -> pd.DataFrame:
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


def _epsilon(summary: Summary) -> str:
    if summary.norm is None:
        return ""
    return format_epsilon(summary.epsilon) if summary.norm == "linf" else f"{summary.epsilon:g}"


def attack_title(summary: Summary) -> str:
    """Return ``pgd 8/255`` or ``pgd l2 0.5``: an attack as a row's title."""
    if summary.norm is None:
        return summary.attack
    norm = "" if summary.norm == "linf" else f"{summary.norm} "
    return f"{summary.attack} {norm}{_epsilon(summary)}"


def percent(summary: Summary) -> str:
    """Return an accuracy with its interval: ``61.5 [54.6, 68.0]``, in percent."""
    return f"{summary.accuracy:.1%} [{summary.low:.1%}, {summary.high:.1%}]".replace("%", "")

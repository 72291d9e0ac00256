"""Perplexity under contamination: the numbers, the comparisons by pairs, and their tables."""

import math

import numpy as np
import pandas as pd

from robustbench_elliptical.reports.blocks import TextBlock, TextEntry, TextUnit
from robustbench_elliptical.reports.contents.findings import Marks
from robustbench_elliptical.reports.contents.pairing import pairs
from robustbench_elliptical.reports.contents.parts import Cell, Column, Table
from robustbench_elliptical.reports.contents.wording import number, records, span
from robustbench_elliptical.reports.tables import format_rate
from robustbench_elliptical.results import holm
from robustbench_elliptical.results.perplexity import perplexity_interval, perplexity_ratio

__all__ = ["best_models", "perplexity_frame", "perplexity_tables", "ratio_frame"]

_COPIED = (
    "perplexity",
    "low",
    "high",
    "clean_target_perplexity",
    "clean_target_low",
    "clean_target_high",
    "word_perplexity",
    "byte_perplexity",
)


def perplexity_frame(block: TextBlock) -> pd.DataFrame:
    """Return one row a model and unit: perplexities of all kinds with their intervals."""
    rows = []
    for unit in block.units():
        for entry in block.entries:
            summary = entry.summaries.get(unit)
            if summary is None:
                continue
            rows.append(
                {
                    "model": entry.label,
                    "attack": unit.attack,
                    "rate": unit.rate,
                    "realised_rate": summary.realised_rate,
                    "documents": summary.documents,
                    "failed": summary.failed,
                    "targets": summary.targets,
                    "words": summary.words,
                    "unit": entry.protocol.unit,
                    **{name: getattr(summary, name) for name in _COPIED},
                    **_word_interval(entry, unit),
                }
            )
    frame = pd.DataFrame(rows)
    numbers = [*_COPIED, "word_low", "word_high"]
    return frame.astype(dict.fromkeys(numbers, "float64"))


def _word_interval(entry: TextEntry, unit: TextUnit) -> dict[str, float]:
    """Return the interval of the perplexity per word; that of all targets where they are words."""
    found = None
    documents = entry.documents[unit]
    if len(documents):
        used = documents[documents["words"] > 0]
        losses, words = (used[name].to_numpy(float) for name in ("loss", "words"))
        found = perplexity_interval(losses, words, seed=entry.runs[0].results.run.seed)
    low, high = found or (math.nan, math.nan)
    return {"word_low": low, "word_high": high}


_COMPARED = (
    "attack",
    "rate",
    "model_a",
    "model_b",
    "documents",
    "ratio",
    "low",
    "high",
    "p_value",
    "same_way",
)


def ratio_frame(block: TextBlock, against: str | None = None) -> pd.DataFrame:
    """Compare models on every text, per word, on the documents that both scored; see `pairs`.

    `p_holm` is corrected for all tests of the block.
    """
    rows = [
        row
        for unit in block.units()
        for first, second in pairs(block.entries, against)
        if unit in first.documents and unit in second.documents
        for row in _compared(unit, first, second)
    ]
    frame = pd.DataFrame(rows, columns=list(_COMPARED))
    frame = frame.astype(dict.fromkeys(("ratio", "low", "high", "p_value"), "float64"))
    tested = frame["p_value"].notna()
    frame["p_holm"] = np.nan
    frame.loc[tested, "p_holm"] = holm(frame.loc[tested, "p_value"].to_numpy(float))
    return frame


def _compared(unit: TextUnit, first: TextEntry, second: TextEntry) -> list[tuple[object, ...]]:
    one, other = first.documents[unit], second.documents[unit]
    if not len(one) or not len(other):
        return []
    both = one.add_suffix("_a").join(other.add_suffix("_b"), how="inner")
    both = both[(both["words_a"] > 0) & (both["words_b"] > 0)]
    if both.empty:
        return []
    sums = [both[name].to_numpy(float) for name in ("loss_a", "words_a", "loss_b", "words_b")]
    found = perplexity_ratio(sums[0], sums[1], sums[2], sums[3], seed=0)
    ratio = float(np.exp(sums[0].sum() / sums[1].sum() - sums[2].sum() / sums[3].sum()))
    low, high, p_value = (math.nan,) * 3 if found is None else found[1:]
    labels = (first.label, second.label, len(both))
    return [(*unit, *labels, ratio, low, high, p_value, first.way == second.way)]


def best_models(frame: pd.DataFrame, comparisons: pd.DataFrame) -> "pd.Series[bool]":
    """Say for each row whether its model's perplexity per word is below every other's.

    Only where the corrected p-value of every comparison is below 0.05 and all models were measured
    in the same way.
    """
    keys = ["attack", "rate"]
    won = comparisons[(comparisons["p_holm"] < 0.05) & comparisons["same_way"].astype(bool)]
    winners = won["model_a"].where(won["ratio"] < 1, won["model_b"])
    wins = won.assign(model=winners).groupby([*keys, "model"]).size().rename("wins")
    joined = frame.merge(wins.reset_index(), on=[*keys, "model"], how="left")
    rivals = frame.groupby(keys)["model"].transform("size") - 1
    best: pd.Series[bool] = (rivals > 0) & (joined["wins"].fillna(0) == rivals)
    return best


_ALL = (
    "perplexity",
    "low",
    "high",
    "Perplexity, all targets",
    "exp(sum of losses / number of targets); the swapped words count too, as in published numbers.",
)
_CLEAN = (
    "clean_target_perplexity",
    "clean_target_low",
    "clean_target_high",
    "Perplexity of the words that were not swapped",
    "The same contaminated text; the swapped words are context but no targets.",
)
_WORD = (
    "word_perplexity",
    "word_low",
    "word_high",
    "Perplexity per word",
    "exp(sum of losses / number of words): what models with different tokens share.",
)


def perplexity_tables(
    block: TextBlock, frame: pd.DataFrame, marks: Marks, name: str
) -> list[Table]:
    """Return tables of models by rates, for each contamination and each kind of perplexity."""
    kinds = [("all", _ALL), ("clean-targets", _CLEAN)]
    kinds += [("word", _WORD)] if len({entry.protocol.unit for entry in block.entries}) > 1 else []
    attacks = list(block.attacks) or [""]
    tables = []
    for place, attack in enumerate(attacks, start=1):
        for kind, (value, low, high, title, note) in kinds:
            if kind == "clean-targets" and not attack:
                continue
            units = [unit for unit in block.units() if unit.attack in ("clean", attack)]
            rows = {
                (row["model"], row["attack"], row["rate"]): row
                for row in records(frame)
                if row["attack"] in ("clean", attack)
            }
            lines = tuple(
                _line(entry, units, rows, (value, low, high), marks) for entry in block.entries
            )
            number_of = f"-{place}" if len(attacks) > 1 else ""
            tables.append(
                Table(
                    f"{name}-perplexity-{kind}{number_of}",
                    f"{title}: clean and under {attack}" if attack else title,
                    (
                        Column("model", numeric=False),
                        Column("documents"),
                        *(
                            Column(unit.attack if not unit.rate else format_rate(unit.rate))
                            for unit in units
                        ),
                    ),
                    lines,
                    notes=(note, *_notes(kind, len(block.entries))),
                    primary=True,
                )
            )
    return tables


def _line(
    entry: TextEntry,
    units: list[TextUnit],
    rows: dict[tuple[str, str, float], dict[str, object]],
    names: tuple[str, str, str],
    marks: Marks,
) -> tuple[Cell, ...]:
    sizes = [entry.summaries[unit].documents for unit in units if unit in entry.summaries]
    most = max(sizes, default=0)
    cells = [Cell(entry.label, marks=marks.get((entry.label, "", 0.0), ())), Cell(str(most))]
    for unit in units:
        row = rows.get((entry.label, *unit))
        if row is None:
            cells.append(Cell("not run"))
            continue
        value, low, high = (float(str(row[name])) for name in names)
        summary = entry.summaries[unit]
        extra = "" if summary.documents == most else f", {summary.documents} documents"
        extra += f", {summary.failed} failed" if summary.failed else ""
        cells.append(
            Cell(
                number(value),
                span(low, high) + extra,
                best=bool(row["best"]) and names[0] != "clean_target_perplexity",
                marks=marks.get((entry.label, *unit), ()),
            )
        )
    return tuple(cells)


def _notes(kind: str, models: int) -> tuple[str, ...]:
    notes = ["95 % intervals by bootstrap over documents. Rates are shares of the eligible words."]
    if models > 1 and kind != "clean-targets":
        notes.append(
            "Bold: lower per word than every other model by the paired bootstrap, Holm-corrected "
            "p < 0.05."
        )
    return tuple(notes)

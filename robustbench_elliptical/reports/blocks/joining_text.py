"""Bring language models that read the same text together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.joining import (
    attached,
    grouped,
    interruptions,
    model_identity,
    relabelled,
    twice_refused,
    unique_label,
)
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.reports.blocks.text import (
    TextBlock,
    TextEntry,
    TextUnit,
    read_documents,
)
from robustbench_elliptical.results import PerplexitySummary, TextAttackRecord

__all__ = ["text_blocks"]


def text_blocks(runs: Sequence[Run]) -> list[TextBlock]:
    """Read the documents of every run and return a block for each text."""
    candidates = [entry for run in runs for entry in _entries(run)]
    return [_block(group) for group in grouped(candidates)]


def _entries(run: Run) -> list[TextEntry]:
    task = run.results.language
    if task is None:
        return []
    rows = read_documents(run)
    grouped_rows = rows.groupby(["model", "attack", "rate"], observed=True, sort=False)
    cells = {_key(key): _numbers(rows.iloc[at]) for key, at in grouped_rows.indices.items()}
    data = {each.model: each for each in task.data}
    protocols = {each.model: each for each in task.protocols}
    labels = ["clean", *(attack.label for attack in task.attacks)]
    found = []
    for record in task.models:
        name = record.name
        if name not in data or name not in protocols:
            raise _broken(run, f"model {name!r} has no data or no protocol")
        entry = TextEntry(name, record, data[name], protocols[name], [run], {}, {})
        for summary in task.summaries:
            if summary.model == name:
                _add(entry, summary, cells, labels, run)
        found.append(entry)
    return found


def _key(key: Any) -> tuple[str, str, float]:
    model, attack, rate = key
    return str(model), str(attack), float(rate)


def _numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_index("document").drop(columns=["model", "attack", "rate", "outcome"])


def _add(
    entry: TextEntry,
    summary: PerplexitySummary,
    cells: Mapping[tuple[str, str, float], pd.DataFrame],
    labels: list[str],
    run: Run,
) -> None:
    """Take over a cell whose documents bear out its summary."""
    unit = TextUnit(summary.attack, round(summary.rate, 12))
    if unit.attack not in labels:
        raise _broken(run, f"attack {unit.attack!r} is not among its attacks")
    documents = cells.get((summary.model, unit.attack, unit.rate), pd.DataFrame())
    scored = summary.documents - summary.failed
    if len(documents) != scored or (scored and not _agrees(documents, summary)):
        raise _broken(
            run,
            f"documents.csv has {len(documents)} documents for {summary.model!r} under "
            f"{unit.title!r} that don't give the perplexity of its results.json",
        )
    entry.summaries[unit] = summary
    entry.documents[unit] = documents


def _agrees(documents: pd.DataFrame, summary: PerplexitySummary) -> bool:
    targets = float(documents["targets"].sum())
    if summary.perplexity is None or targets == 0:
        return summary.perplexity is None and targets == 0
    with np.errstate(over="ignore"):
        found = np.exp(documents["loss"].sum() / targets)
    return bool(np.isclose(found, summary.perplexity, rtol=1e-6))


def _broken(run: Run, problem: str) -> UsageError:
    return UsageError(f"results in {run.folder} are broken: {problem}; evaluate again")


def _block(candidates: Sequence[TextEntry]) -> TextBlock:
    notes: list[str] = []
    attacks: dict[str, TextAttackRecord] = {}
    names: dict[str, Mapping[str, str]] = {}
    entries: list[TextEntry] = []
    origins: dict[tuple[str, str], TextEntry] = {}
    for entry in candidates:
        run, name = entry.runs[0], entry.label
        task = run.results.language
        if task is not None and run.label not in names:
            names[run.label] = relabelled(attacks, task.attacks, run, notes)
        _rename(entry, names[run.label])
        origins[(run.label, name)] = _placed(entry, entries, notes)
    data = candidates[0].data
    block = TextBlock(f"{data.name} ({data.split})", entries, attacks, [], notes)
    for run in {each.label: each for entry in entries for each in entry.runs}.values():
        block.findings += attached(run, run.results.language, names[run.label], origins)
    notes += interruptions(entries, lambda entry: entry.data.documents, "documents")
    if len({entry.way for entry in entries}) > 1:
        notes.append(
            "Not every model was measured in the same way (window, stride, context, prefix; see "
            "the provenance): such models are compared, but none is called the best."
        )
    return block


def _rename(entry: TextEntry, names: Mapping[str, str]) -> None:
    def renamed(unit: TextUnit) -> TextUnit:
        return unit._replace(attack=names.get(unit.attack, unit.attack))

    entry.summaries = {renamed(unit): each for unit, each in entry.summaries.items()}
    entry.documents = {renamed(unit): each for unit, each in entry.documents.items()}


def _placed(entry: TextEntry, entries: list[TextEntry], notes: list[str]) -> TextEntry:
    """Add a model to the block, or its attacks to the model that it is; return who holds them."""
    identity = model_identity(entry.record)
    for known in entries:
        same = known.record.name == entry.record.name and known.way == entry.way
        if same and model_identity(known.record) == identity:
            _merge(known, entry, notes)
            return known
    entry.label = unique_label(entry.label, entry.runs[0], [each.label for each in entries])
    entries.append(entry)
    return entry


def _merge(known: TextEntry, entry: TextEntry, notes: list[str]) -> None:
    """Add the attacks that another run made on the same model; clean text may be there twice."""
    run = entry.runs[0]
    for unit, summary in entry.summaries.items():
        if unit not in known.summaries:
            known.summaries[unit] = summary
            known.documents[unit] = entry.documents[unit]
        elif unit.attack != "clean":
            raise twice_refused(known.label, unit.title, known.runs[0], run)
    known.runs.append(run)
    notes.append(
        f"Model {known.label} is the same in {' and '.join(each.label for each in known.runs)}: "
        f"their attacks are merged; clean is that of {known.runs[0].label}."
    )

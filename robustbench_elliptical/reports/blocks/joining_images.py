"""Bring image classifiers that saw the same images together."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.images import (
    CLEAN,
    WORST_CASE,
    ImageBlock,
    ImageCost,
    ImageEntry,
    ImageUnit,
)
from robustbench_elliptical.reports.blocks.internals import model_internals, model_pictures
from robustbench_elliptical.reports.blocks.joining import (
    attached,
    grouped,
    interruptions,
    model_identity,
    relabelled,
    twice_refused,
    unique_label,
)
from robustbench_elliptical.reports.blocks.outcomes import (
    ABSENT,
    Codes,
    Outcomes,
    read_outcomes,
    rounded,
)
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.results import AccuracySummary, AttackRecord

__all__ = ["image_blocks"]

T = TypeVar("T")


def image_blocks(runs: Sequence[Run]) -> list[ImageBlock]:
    """Read the samples of every run and return a block for each set of images."""
    candidates = [entry for run in runs for entry in _entries(run)]
    return [_block(group) for group in grouped(candidates)]


def _entries(run: Run) -> list[ImageEntry]:
    task = run.results.images
    if task is None:
        return []
    outcomes = read_outcomes(run)
    data = {each.model: each for each in task.data}
    labels = [attack.label for attack in task.attacks]
    found = []
    for record in task.models:
        if record.name not in data:
            raise _broken(run, f"model {record.name!r} has no data")
        entry = ImageEntry(
            record.name, record, data[record.name], [run], outcomes.samples, codes={}, costs={}
        )
        for summary in task.summaries:
            if summary.model == record.name and summary.attack != WORST_CASE:
                _add(entry, summary, outcomes, labels, run)
        entry.internals = model_internals(run, task, record.name)
        entry.pictures = model_pictures(run, task, record.name)
        found.append(entry)
    return found


def _add(
    entry: ImageEntry, summary: AccuracySummary, outcomes: Outcomes, labels: list[str], run: Run
) -> None:
    """Take over a cell whose samples bear out its summary."""
    unit = ImageUnit(summary.attack, summary.norm, rounded(summary.epsilon))
    if unit.attack != CLEAN and unit.attack not in labels:
        raise _broken(run, f"attack {unit.attack!r} is not among its attacks")
    codes = outcomes.codes.get((summary.model, unit.attack, unit.epsilon))
    counted = (0, 0) if codes is None else (int((codes != ABSENT).sum()), int((codes == 0).sum()))
    if codes is None or counted != (summary.samples, summary.robust):
        raise _broken(
            run,
            f"samples.csv has {counted[1]} of {counted[0]} samples robust for {summary.model!r} "
            f"under {unit.title!r}, results.json {summary.robust} of {summary.samples}",
        )
    entry.codes[unit] = codes
    entry.costs[unit] = ImageCost(
        summary.samples, summary.forwards, summary.backwards, summary.seconds
    )


def _broken(run: Run, problem: str) -> UsageError:
    return UsageError(f"results in {run.folder} are broken: {problem}; evaluate again")


def _block(candidates: Sequence[ImageEntry]) -> ImageBlock:
    notes: list[str] = []
    attacks: dict[str, AttackRecord] = {}
    names: dict[str, Mapping[str, str]] = {}
    for entry in candidates:
        run = entry.runs[0]
        task = run.results.images
        if task is not None and run.label not in names:
            names[run.label] = relabelled(attacks, task.attacks, run, notes)
    samples = _union([entry.samples for entry in candidates])
    entries: list[ImageEntry] = []
    origins: dict[tuple[str, str], ImageEntry] = {}
    for entry in candidates:
        run, name = entry.runs[0], entry.label
        _realign(entry, samples, names[run.label])
        origins[(run.label, name)] = _placed(entry, entries, attacks, notes)
    block = ImageBlock(candidates[0].data.name, samples, entries, attacks, [], notes)
    for entry in entries:
        entry.add_worst_cases(block.real)
    for run in {each.label: each for entry in entries for each in entry.runs}.values():
        block.findings += attached(run, run.results.images, names[run.label], origins)
    notes += interruptions(entries, _reached, "samples")
    notes += _different_worst_cases(block)
    return block


def _reached(entry: ImageEntry) -> int:
    return max((int((codes != ABSENT).sum()) for codes in entry.codes.values()), default=0)


def _union(indices: Sequence["pd.Index[str]"]) -> "pd.Index[str]":
    union = indices[0]
    for index in indices[1:]:
        if index is not union and not index.equals(union):
            union = union.append(index[~index.isin(union)])
    return union


def _realign(entry: ImageEntry, samples: "pd.Index[str]", names: Mapping[str, str]) -> None:
    """Bring the outcomes into the order of the block, under its names of the attacks."""
    same = entry.samples is samples or entry.samples.equals(samples)
    places = None if same else samples.get_indexer(entry.samples)
    if places is not None:
        for unit, codes in entry.codes.items():
            moved: Codes = np.full(len(samples), ABSENT, dtype=np.int8)
            moved[places] = codes
            entry.codes[unit] = moved
    entry.codes = _renamed(entry.codes, names)
    entry.costs = _renamed(entry.costs, names)
    entry.internals = _renamed(entry.internals, names)
    entry.pictures = _renamed(entry.pictures, names)
    entry.samples = samples


def _renamed(found: Mapping[ImageUnit, T], names: Mapping[str, str]) -> dict[ImageUnit, T]:
    return {
        unit._replace(attack=names.get(unit.attack, unit.attack)): value
        for unit, value in found.items()
    }


def _placed(
    entry: ImageEntry,
    entries: list[ImageEntry],
    attacks: Mapping[str, AttackRecord],
    notes: list[str],
) -> ImageEntry:
    """Add a model to the block, or its attacks to the model that it is; return who holds them."""
    identity = model_identity(entry.record)
    for known in entries:
        if known.record.name == entry.record.name and model_identity(known.record) == identity:
            _merge(known, entry, attacks, notes)
            return known
    taken = [each.label for each in entries]
    entry.label = unique_label(entry.label, entry.runs[0], taken)
    entries.append(entry)
    return entry


def _merge(
    known: ImageEntry, entry: ImageEntry, attacks: Mapping[str, AttackRecord], notes: list[str]
) -> None:
    """Add the attacks that another run made on the same model; controls may be there twice."""
    run = entry.runs[0]
    for unit, codes in entry.codes.items():
        if unit not in known.codes:
            known.codes[unit], known.costs[unit] = codes, entry.costs[unit]
        elif unit.attack != CLEAN and attacks[unit.attack].knowledge != "none":
            raise twice_refused(known.label, unit.title, known.runs[0], run)
    known.internals = {**entry.internals, **known.internals}
    known.pictures = {**entry.pictures, **known.pictures}
    known.runs.append(run)
    notes.append(
        f"Model {known.label} is the same in {' and '.join(each.label for each in known.runs)}: "
        f"their attacks are merged; clean and noise are those of {known.runs[0].label}."
    )


def _different_worst_cases(block: ImageBlock) -> list[str]:
    notes = []
    for unit in block.units():
        if unit.attack != WORST_CASE or unit.norm is None:
            continue
        having = [entry for entry in block.entries if unit in entry.codes]
        if not all(block.comparable(unit, having[0], entry) for entry in having):
            sets = (
                f"{entry.label}: "
                + ", ".join(
                    each.attack for each in entry.attacked(block.real)[unit.norm, unit.epsilon]
                )
                for entry in having
            )
            notes.append(
                f"The worst case at {unit.size} is not over the same attacks for every model "
                f"({'; '.join(sets)}); models with different ones are not compared."
            )
    return notes

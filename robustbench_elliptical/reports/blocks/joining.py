"""What joining the models of several runs has in common for every task."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.results import (
    AttackRecord,
    Finding,
    ModelRecord,
    TaskResults,
    TextAttackRecord,
)

__all__ = [
    "attached",
    "grouped",
    "interruptions",
    "model_identity",
    "relabelled",
    "twice_refused",
    "unique_label",
]

_INPUT = ("input_shape", "preprocessing")

T = TypeVar("T")
A = TypeVar("A", AttackRecord, TextAttackRecord)


class _Data(Protocol):
    name: str
    model: str
    sha256: str


class Candidate(Protocol):
    """A model of a run that looks for its block."""

    label: str
    record: ModelRecord
    runs: list[Run]

    @property
    def data(self) -> Any:
        """What it was evaluated on."""


C = TypeVar("C", bound=Candidate)


def grouped(candidates: Sequence[C]) -> list[list[C]]:
    """Group models whose data has the same hash.

    In an interrupted run a model that was stopped early has read fewer samples, and so has another
    hash; it joins the models of the same run with the same data and inputs.
    """
    groups: list[list[C]] = []
    for candidate in candidates:
        homes = [group for group in groups if any(_same_data(candidate, each) for each in group)]
        joined = [each for group in homes for each in group] + [candidate]
        groups = [group for group in groups if group not in homes] + [joined]
    order = {id(each): place for place, each in enumerate(candidates)}
    groups = [sorted(group, key=lambda each: order[id(each)]) for group in groups]
    return sorted(groups, key=lambda group: order[id(group[0])])


def _same_data(one: Candidate, other: Candidate) -> bool:
    if one.data.sha256 == other.data.sha256:
        return True
    same_run = one.runs[0].folder == other.runs[0].folder
    if not same_run or one.runs[0].results.complete or one.data.name != other.data.name:
        return False
    first, second = ({k: each.record.description.get(k) for k in _INPUT} for each in (one, other))
    return first == second and _size(one) != _size(other)


def _size(candidate: Candidate) -> int:
    data = candidate.data
    return int(data.samples if hasattr(data, "samples") else data.documents)


def model_identity(record: ModelRecord) -> tuple[str, str]:
    """Return what makes two models the same: the weights and everything but the name."""
    facts = {key: value for key, value in record.description.items() if key != "name"}
    return record.weights_sha256, repr(sorted(facts.items()))


def unique_label(label: str, run: Run, taken: Sequence[str]) -> str:
    """Return a label that no other model or attack of the block has."""
    if label not in taken:
        return label
    label, number = f"{label} ({run.label})", 2
    base = label
    while label in taken:
        label, number = f"{base} {number}", number + 1
    return label


def relabelled(
    known: dict[str, A], records: Sequence[A], run: Run, notes: list[str]
) -> Mapping[str, str]:
    """Add attacks to those known; return how each is called from now on.

    An attack with the label of another one but other settings gets the run's name added.
    """
    names: dict[str, str] = {}
    for record in records:
        alike = next(
            (label for label, other in known.items() if _setup(other) == _setup(record)), None
        )
        label = alike or unique_label(record.label, run, list(known))
        if label != record.label and alike is None:
            notes.append(
                f"Attack {record.label} ran with other settings in {run.label} than in another "
                f"run; it is shown apart as {label}."
            )
        known.setdefault(label, record)
        names[record.label] = label
    return names


def _setup(record: AttackRecord | TextAttackRecord) -> tuple[object, ...]:
    norm = record.norm if isinstance(record, AttackRecord) else None
    settings = repr(sorted(record.settings.items()))
    return record.label, record.name, record.knowledge, norm, settings


def twice_refused(label: str, title: str, first: Run, second: Run) -> UsageError:
    """Return the error about one cell that two runs measured."""
    return UsageError(
        f"RUN must give each model's result under an attack on the same data once; model "
        f"{label!r} (same weights and settings) met {title!r} in both {first.folder} and "
        f"{second.folder}; leave one of them out"
    )


def attached(
    run: Run,
    task: TaskResults | None,
    names: Mapping[str, str],
    origins: Mapping[tuple[str, str], T],
) -> list[tuple[Run, T | None, Finding]]:
    """Return the red flags of a run that are about models of a block.

    Those about a model that the run doesn't know come along, so that none is lost.

    Parameters
    ----------
    run, task
        The run, and its part that the block is about.
    names
        How the block calls the run's attacks.
    origins
        The block's models by run and the name they have there.
    """
    if task is None:
        return []
    known = {model.name for model in task.models}
    return [
        (
            run,
            origins.get((run.label, finding.model)),
            finding.model_copy(update={"attack": names.get(finding.attack or "", finding.attack)}),
        )
        for finding in task.findings
        if (run.label, finding.model) in origins or finding.model not in known
    ]


def interruptions(entries: Sequence[C], size: Callable[[C], int], what: str) -> list[str]:
    """Return a note for each run that was interrupted."""
    notes: list[str] = []
    runs = {run.label: run for entry in entries for run in entry.runs}
    for label, run in runs.items():
        if not run.results.complete:
            reached = [
                f"{entry.label} {size(entry)}"
                for entry in entries
                if any(each.label == label for each in entry.runs)
            ]
            notes.append(
                f"Run {label} was interrupted: its numbers hold for the {what} that were finished "
                f"({', '.join(reached)}); a comparison uses those that both models reached."
            )
    return notes

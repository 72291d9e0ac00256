"""Whether two evaluations asked the same questions; if not, in what they differ."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from robustbench_elliptical.gate.baseline import FrozenDocuments, FrozenSamples
from robustbench_elliptical.gate.cells import TaskName
from robustbench_elliptical.results import Results, TaskResults

__all__ = ["find_differences", "find_notices"]

_FREE = ("models", "attacks", "data", "device", "batch_size", "examples")
"""Settings that may differ: attacks and data are compared by what they were, not by their names."""
_MISSING = "none"

Frozen = FrozenSamples | FrozenDocuments


def find_differences(
    before: tuple[Results, Frozen], after: tuple[Results, Frozen], task: TaskName
) -> list[str]:
    """Return what makes two evaluations of one task incomparable, each as a phrase.

    Parameters
    ----------
    before, after
        The record and the outcomes of the model, of the baseline and of the check.
    task
        What both models do.
    """
    old, new = _task(before[0], task), _task(after[0], task)
    found = _unequal("setting ", _settings(before[0]), _settings(after[0]))
    found += _unequal("", _data(old, before[1].model), _data(new, after[1].model))
    found += _unequal("", _protocol(old, before[1].model), _protocol(new, after[1].model))
    found += _unequal("attack ", _attacks(old), _attacks(new))
    if found:
        return found
    return _unequal("", _samples(before[1]), _samples(after[1]))


def find_notices(before: Results, after: Results) -> list[str]:
    """Return what differs and may change outcomes by rounding only, each as a sentence."""
    found = _unequal("", before.run.versions, after.run.versions)
    found += _unequal("", {"device": before.run.device}, {"device": after.run.device})
    return [f"The baseline ran elsewhere: {each}." for each in found]


def _task(results: Results, task: TaskName) -> TaskResults:
    return next(each for each in results.tasks if each.task == task)


def _unequal(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys(chain(before, after))
    pairs = ((name, before.get(name, _MISSING), after.get(name, _MISSING)) for name in names)
    return [f"{kind}{name}: {old} then, {new} now" for name, old, new in pairs if old != new]


def _settings(results: Results) -> dict[str, Any]:
    settings = results.run.settings or {}
    return {name: value for name, value in settings.items() if name not in _FREE}


def _data(task: TaskResults, model: str) -> dict[str, Any]:
    hashes = {each.model: each.sha256 for each in task.data}
    models = {each.name: each.description for each in task.models}
    vocabulary = models.get(model, {}).get("vocabulary_sha256") or _MISSING
    return {"data hash": hashes.get(model, _MISSING), "vocabulary hash": vocabulary}


def _protocol(task: TaskResults, model: str) -> dict[str, Any]:
    if task.task == "image-classification":
        return {}
    found = [each for each in task.protocols if each.model == model]
    return found[0].model_dump(exclude={"model"}) if found else {}


def _attacks(task: TaskResults) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attack in task.attacks:
        record = attack.model_dump(exclude={"label", "name", "settings"})
        found |= {f"{attack.label} {name}": value for name, value in record.items()}
        found |= {f"{attack.label} {name}": value for name, value in attack.settings.items()}
    return found


def _samples(frozen: Frozen) -> dict[str, Any]:
    """Return what must be the same of the samples, a row of them as one value."""
    if isinstance(frozen, FrozenSamples):
        units = [f"{unit.attack} {unit.epsilon:g}" for unit in frozen.units]
        return {"sample ids": _Row(frozen.ids), "labels": _Row(frozen.labels), "runs": units}
    facts: dict[str, Any] = {"document ids": _Row(frozen.ids)}
    for text in frozen.units:
        name = f"{text.attack} {text.rate:g}"
        facts[f"targets under {name}"] = _Row(text.targets)
        facts[f"eligible words under {name}"] = _Row(text.eligible)
    return facts


class _Row(list[Any]):
    """A long list whose text is short."""

    def __str__(self) -> str:
        return f"{len(self)} ({', '.join(str(each) for each in self[:3])}, ...)"

    __format__ = object.__format__

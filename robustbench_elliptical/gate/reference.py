"""Which model of the baseline a checkpoint is held against, and whether the rules fit it."""

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.gate.baseline import Baseline
from robustbench_elliptical.gate.cells import CLEAN, WORST_CASE, TaskName
from robustbench_elliptical.gate.outputs.escaping import one_line
from robustbench_elliptical.gate.rules import Rules
from robustbench_elliptical.results import ModelRecord

__all__ = ["check_rules", "other_parts", "reference_model"]

_COMPUTES = ("source", "architecture", "attention", "attention_settings", "mean", "std")
"""What of a description decides the outcomes, besides the weights."""


def reference_model(
    baseline: Baseline, task: TaskName, name: str, against: str | None
) -> ModelRecord:
    """Return the model of the baseline that a checkpoint is held against.

    It is the one named, else the only one of the task, else the one of the same name, another
    checkpoint or not; a count model that an evaluation adds as a floor is not meant unless named.

    Parameters
    ----------
    baseline
        The frozen run.
    task
        What the checkpoint does.
    name
        Name of the checkpoint's model.
    against
        Name of the model chosen, if one was.

    Raises
    ------
    UsageError
        If there is none, or several that could be meant.
    """
    found = [each for part in baseline.results.tasks if part.task == task for each in part.models]
    models = {each.name: each for each in found}
    if not models:
        raise UsageError(
            f"the baseline has no model for {task}, which {one_line(name)} is for; freeze one"
        )
    if against is not None:
        if against not in models:
            raise UnknownNameError("model of the baseline", against, map(one_line, models))
        return models[against]
    meant = [each for each in found if not _is_floor(each)] or found
    if len(meant) == 1:
        return meant[0]
    for same in (name, name.partition(",checkpoint=")[0]):
        if same in models:
            return models[same]
    names = ", ".join(one_line(each.name) for each in meant)
    raise UsageError(
        f"the baseline has the models {names}, none named {one_line(name)}; choose one by "
        "--against NAME"
    )


def _is_floor(model: ModelRecord) -> bool:
    architecture = model.description.get("architecture") or {}
    return bool(architecture.get("family") == "bigram")


def other_parts(before: ModelRecord, after: ModelRecord) -> list[str]:
    """Return what makes two models compute different things, in words; empty if nothing does."""
    found = [
        name.replace("_", " ")
        for name in _COMPUTES
        if before.description.get(name) != after.description.get(name)
    ]
    return ["weights"] * (before.weights_sha256 != after.weights_sha256) + found


def check_rules(rules: Rules, baseline: Baseline) -> None:
    """Refuse limits for an attack that is not in the baseline.

    Raises
    ------
    UnknownNameError
        With the names that there are.
    """
    known = {CLEAN, WORST_CASE}
    for part in baseline.results.tasks:
        known |= {name for attack in part.attacks for name in (attack.label, attack.name)}
    rules.check_names(known)

"""How the numbers came about and how to get them again."""

from collections.abc import Mapping, Sequence
from typing import Any

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports.blocks import Run
from robustbench_elliptical.reports.contents.parts import Fact, Facts
from robustbench_elliptical.reports.tables import format_rate
from robustbench_elliptical.results import (
    AttackRecord,
    ImageClassificationResults,
    LanguageModellingResults,
    ModelRecord,
    TaskResults,
    TextAttackRecord,
)

__all__ = ["provenance"]

_MODEL_FACTS = ("attention", "attention_settings", "gradient_mode", "parameters", "checkpoint_file")


def provenance(runs: Sequence[Run]) -> tuple[Facts, ...]:
    """Return the facts of every run."""
    return tuple(Facts(f"Run {run.label}", tuple(_facts(run))) for run in runs)


def _facts(run: Run) -> list[Fact]:
    record = run.results.run
    limit = "all samples" if record.limit is None else f"at most {record.limit} samples"
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    facts = [
        Fact("Rerun by", record.command or "not known: the evaluation was started from Python"),
        Fact("Started", record.created),
        Fact("State", "complete" if run.results.complete else "interrupted"),
        Fact(
            "Settings",
            f"seed {record.seed}, {limit}, batches of {record.batch_size}, on {record.device} with "
            f"{record.threads} threads, {record.seconds:.0f} s in all",
        ),
        Fact("Versions", versions),
        Fact("Commit", record.git_commit or "not run from a checkout"),
    ]
    for task in run.results.tasks:
        facts += [Fact(f"Model {model.name}", _model(model)) for model in task.models]
        facts += _data(task)
        facts += [Fact(f"Attack {attack.label}", _attack(attack)) for attack in task.attacks]
    return facts


def _model(model: ModelRecord) -> str:
    known = {name: model.description.get(name) for name in _MODEL_FACTS}
    facts = _settings({name: value for name, value in known.items() if value not in (None, {})})
    seed = "" if model.seed is None else f", training seed {model.seed}"
    return f"weights sha256 {model.weights_sha256}{seed}{', ' if facts else ''}{facts}"


def _data(task: TaskResults) -> list[Fact]:
    if isinstance(task, ImageClassificationResults):
        return [
            Fact(
                f"Data of {each.model}",
                f"{each.name}, n = {each.samples}, sha256 {each.sha256}",
            )
            for each in task.data
        ]
    return [*_texts(task), *_protocols(task)]


def _texts(task: LanguageModellingResults) -> list[Fact]:
    return [
        Fact(
            f"Data of {each.model}",
            f"{each.name} ({each.split}), {each.documents} documents, {each.words} words"
            + ("" if each.unknown_words is None else f", {each.unknown_words} of them unknown")
            + f", sha256 {each.sha256}",
        )
        for each in task.data
    ]


def _protocols(task: LanguageModellingResults) -> list[Fact]:
    return [
        Fact(
            f"Protocol of {each.model}",
            f"windows of {each.window} tokens, stride {each.stride}, context {each.context}, "
            + (
                "the first token of a sequence is not scored"
                if each.prefix is None
                else f"{each.prefix} before the first word"
            )
            + f", per {each.unit}",
        )
        for each in task.protocols
    ]


def _attack(attack: AttackRecord | TextAttackRecord) -> str:
    sizes = (
        "epsilon " + ", ".join(format_epsilon(each) for each in attack.epsilons)
        if isinstance(attack, AttackRecord)
        else "rate " + ", ".join(format_rate(each) for each in attack.rates)
    )
    settings = _settings(attack.settings)
    return f"{attack.name}, {attack.knowledge}, {sizes}{', ' if settings else ''}{settings}"


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"({_settings(value)})"
    return str(value)

"""Everything an evaluation depends on, as one value: what the command line can say, it can say."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from robustbench_elliptical.attacks import ATTACKS
from robustbench_elliptical.attacks.text import TEXT_ATTACKS
from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.data import DATA
from robustbench_elliptical.data.text import TEXT, SplitName

__all__ = ["CLEAN", "EvaluationSettings", "Task", "option_name"]

Task = Literal["image-classification", "language-modelling"]

CLEAN = "clean"
"""Stands for no attack, of either task."""

_MODELS: dict[Task, tuple[str, ...]] = {
    "image-classification": ("deit-micro-softmax", "deit-micro-elliptical"),
    "language-modelling": (
        "lm-micro-softmax",
        "lm-micro-elliptical",
        "lm-micro-elliptical-released",
    ),
}
_ATTACKS: dict[Task, tuple[str, ...]] = {
    "image-classification": ("fgsm", "pgd", "spsa"),
    "language-modelling": ("word-swap",),
}
_DATA: dict[Task, str] = {"image-classification": "fashion-mnist", "language-modelling": "sotu"}
_SETTINGS: dict[Task, set[str]] = {
    "image-classification": {"epsilons", "examples"},
    "language-modelling": {
        "rates",
        "split",
        "document_words",
        "window",
        "stride",
        "context",
        "prefix",
    },
}
"""Settings that mean something for one task alone."""


class EvaluationSettings(BaseModel):
    """What to evaluate, on what, how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...] = ()
    """Models, as `NAME,key=value`; none: the shipped ones that the attacks are for."""
    attacks: tuple[str, ...] = ()
    """Attacks, as `NAME:key=value`; `clean` for none; empty: the usual ones for the models."""
    epsilons: tuple[str, ...] = Field(default=("8/255",), min_length=1)
    """Sizes of the perturbation in [0, 1] pixels, for image attacks without one of their own."""
    rates: tuple[str, ...] = Field(default=("1%", "2.5%", "5%", "10%"), min_length=1)
    """Shares of the eligible words, for text attacks without one of their own."""
    data: tuple[str, ...] = ()
    """Images and text, as `NAME` or `NAME:PATH`, at most one of each; none: the embedded ones."""
    split: SplitName = "test"
    """Which part of a text corpus."""
    limit: int | None = Field(default=200, ge=1)
    """Largest number of samples (images, class-balanced, or documents); `all` for every one."""
    document_words: int | None = Field(default=2000, ge=2)
    """Words read of each document, from its start; `all` for every one."""
    window: int | None = Field(default=None, ge=1)
    """Tokens of context at most; none: what each language model was trained with."""
    stride: int | None = Field(default=None, ge=1)
    """Tokens by which the window moves; none: a quarter of the window."""
    context: Literal["document", "stream"] = "document"
    """Whether a document starts afresh or after the documents before it."""
    prefix: bool = True
    """Whether the end-of-line token stands before the first word, so that it is scored too."""
    examples: int = Field(default=8, ge=0)
    """Images, chosen as by a smaller `limit`, on which the inside of each model is measured;
    pictures of the first are kept. It changes no outcome."""
    seed: int = Field(default=0, ge=0)
    """Seed of the selection of samples and of every attack."""
    batch_size: int = Field(default=100, ge=1)
    """Images attacked or windows read together; it changes no outcome but for rounding."""
    device: str = "cpu"
    """A torch device."""

    @field_validator("limit", "document_words", mode="before")
    @classmethod
    def _all_is_no_limit(cls, value: object) -> object:
        return None if value == "all" else value

    @field_validator("data", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("epsilons", "rates", mode="before")
    @classmethod
    def _numbers_as_text(cls, values: object) -> object:
        if isinstance(values, list | tuple):
            return tuple(str(value) if type(value) in (int, float) else value for value in values)
        return values

    @field_validator("models", "attacks", "epsilons", "rates")
    @classmethod
    def _named_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is given twice")
        return values

    def chosen_models(self) -> tuple[str, ...]:
        """Return the models: those given, or the shipped ones that the attacks are for.

        Raises
        ------
        UnknownNameError
            If there is no such attack or data set.
        """
        if self.models:
            return self.models
        named = [_task_of_attack(each) for each in self.attacks if each != CLEAN]
        named += [_task_of_data(each) for each in self.data]
        tasks: list[Task] = list(dict.fromkeys(named)) or ["image-classification"]
        return tuple(model for task in tasks for model in _MODELS[task])

    def chosen_attacks(self, task: Task) -> tuple[str, ...]:
        """Return the attacks for the models of a task: those given, or the usual ones if none are.

        Raises
        ------
        UnknownNameError
            If there is no such attack.
        """
        if not self.attacks:
            return _ATTACKS[task]
        return tuple(
            each for each in self.attacks if each != CLEAN and _task_of_attack(each) == task
        )

    def chosen_data(self, task: Task) -> str:
        """Return the data for the models of a task.

        Raises
        ------
        UsageError
            If a name is unknown or two are for one task.
        """
        chosen = [each for each in self.data if _task_of_data(each) == task]
        if len(chosen) > 1:
            raise UsageError(
                f"data can be one set of images and one of text, got {' and '.join(chosen)}; run "
                "them one after the other"
            )
        return chosen[0] if chosen else _DATA[task]

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse an attack, data or a setting that none of the models can use.

        Raises
        ------
        UsageError
            If there is one.
        """
        kinds = {"image-classification": "images", "language-modelling": "text"}
        for what, given, task_of in (
            ("attack", self.attacks, _task_of_attack),
            ("data", self.data, _task_of_data),
        ):
            for each in given:
                if each != CLEAN and task_of(each) not in tasks:
                    raise UsageError(
                        f"{what} {each} is for {kinds[task_of(each)]}, and no model given is; add "
                        f"one such as {_MODELS[task_of(each)][0]}"
                    )
        for task, names in _SETTINGS.items():
            idle = sorted(names & self.model_fields_set) if task not in tasks else []
            if idle:
                raise UsageError(
                    f"{idle[0]} ({option_name(idle[0])}) is for {kinds[task]}, and no model given "
                    "is; leave it out"
                )


def option_name(setting: str) -> str:
    """Return how the command line calls a setting: ``--epsilon`` for ``epsilons``."""
    repeatable = {"models": "model", "attacks": "attack", "epsilons": "epsilon", "rates": "rate"}
    return f"--{repeatable.get(setting, setting).replace('_', '-')}"


def _task_of_attack(text: str) -> Task:
    name = text.partition(":")[0].strip()
    if name in ATTACKS:
        return "image-classification"
    if name in TEXT_ATTACKS:
        return "language-modelling"
    raise UnknownNameError("attack", name, [*ATTACKS, *TEXT_ATTACKS])


def _task_of_data(text: str) -> Task:
    name = text.partition(":")[0].strip()
    if name in DATA:
        return "image-classification"
    if name in TEXT:
        return "language-modelling"
    ways = [way for known in DATA for way in DATA[known].usage]
    ways += [TEXT[known].usage for known in TEXT]
    raise UnknownNameError("data", name, [*DATA, *TEXT], f"Write one of {', '.join(sorted(ways))}.")

"""Everything an evaluation depends on, as one value: what the command line can say, it can say."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

from robustbench_elliptical.attacks import AttackChoice, parse_attack
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.specs import parse_epsilon
from robustbench_elliptical.evaluation.engine import PlannedAttack
from robustbench_elliptical.evaluation.records import CLEAN

__all__ = ["DEFAULT_ATTACKS", "DEFAULT_EPSILONS", "DEFAULT_MODELS", "EvaluationSettings"]

DEFAULT_MODELS = ("deit-micro-softmax", "deit-micro-elliptical")
DEFAULT_ATTACKS = ("fgsm", "pgd", "spsa")
DEFAULT_EPSILONS = ("8/255",)


class EvaluationSettings(BaseModel):
    """What to evaluate, on what, how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...] = Field(default=DEFAULT_MODELS, min_length=1)
    """Models, as `NAME,key=value`."""
    attacks: tuple[str, ...] = DEFAULT_ATTACKS
    """Attacks, as `NAME:key=value`; `clean` for none."""
    epsilons: tuple[str, ...] = Field(default=DEFAULT_EPSILONS, min_length=1)
    """Sizes of the perturbation in [0, 1] pixels, for attacks that state no epsilon themselves."""
    data: str = "fashion-mnist"
    """Data set, as `NAME` or `NAME:PATH`."""
    limit: int | None = Field(default=200, ge=1)
    """Largest number of samples, class-balanced; `all` or none for every one."""
    seed: int = Field(default=0, ge=0)
    """Seed of the selection of samples and of every attack."""
    batch_size: int = Field(default=100, ge=1)
    """Samples attacked together; it changes no outcome but for rounding."""
    device: str = "cpu"
    """A torch device."""

    @field_validator("limit", mode="before")
    @classmethod
    def _all_is_no_limit(cls, value: object) -> object:
        return None if value == "all" else value

    @field_validator("epsilons", mode="before")
    @classmethod
    def _numbers_as_text(cls, values: object) -> object:
        if isinstance(values, list | tuple):
            return tuple(str(value) if type(value) in (int, float) else value for value in values)
        return values

    @field_validator("models", "attacks", "epsilons")
    @classmethod
    def _named_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is given twice")
        return values

    def planned_attacks(self) -> list[PlannedAttack]:
        """Return the attacks with their epsilons; a noise control for each norm comes first.

        Raises
        ------
        UsageError
            If an attack, a setting or an epsilon is unknown or out of range.
        """
        grid = sorted({parse_epsilon(each) for each in self.epsilons})
        chosen = [parse_attack(each) for each in self.attacks if each != CLEAN]
        if not chosen:
            for epsilon in grid:
                parse_attack("noise").check_epsilon(epsilon)
        planned: list[PlannedAttack] = []
        for norm in dict.fromkeys(each.norm for each in chosen):
            own = [each.epsilon for each in chosen if each.norm == norm]
            union = {size for each in own for size in (grid if each is None else [each])}
            control = parse_attack("noise" if norm == "linf" else f"noise:norm={norm}")
            if control.label not in {each.label for each in chosen}:
                planned.append(PlannedAttack(control, tuple(sorted(union))))
        for choice in chosen:
            sizes = grid if choice.epsilon is None else [choice.epsilon]
            planned.append(PlannedAttack(choice, tuple(sizes)))
        return _merged(planned)


def _merged(planned: list[PlannedAttack]) -> list[PlannedAttack]:
    """Join entries that are one attack at several epsilons, and check every epsilon."""
    by_label: dict[str, tuple[AttackChoice, set[float]]] = {}
    for choice, epsilons in planned:
        for epsilon in epsilons:
            choice.check_epsilon(epsilon)
        sizes = by_label.setdefault(choice.label, (choice, set()))[1]
        if sizes & set(epsilons):
            raise UsageError(f"attack {choice.label} is given twice at the same epsilon")
        sizes.update(epsilons)
    return [PlannedAttack(choice, tuple(sorted(sizes))) for choice, sizes in by_label.values()]

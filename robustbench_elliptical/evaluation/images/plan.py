"""Which attacks run at which epsilons: what was chosen, and a noise control for every norm."""

from collections.abc import Sequence
from typing import NamedTuple

from robustbench_elliptical.attacks import AttackChoice, parse_attack
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.specs import parse_epsilon

__all__ = ["PlannedAttack", "plan_attacks"]


class PlannedAttack(NamedTuple):
    """An attack and the epsilons it is run at."""

    choice: AttackChoice
    epsilons: tuple[float, ...]
    """Increasing, in [0, 1] pixels."""


def plan_attacks(attacks: Sequence[str], epsilons: Sequence[str]) -> list[PlannedAttack]:
    """Return the attacks with their epsilons; a noise control for each norm comes first.

    Parameters
    ----------
    attacks
        As ``NAME:key=value,...``.
    epsilons
        For attacks that state no epsilon themselves, as ``8/255``.

    Raises
    ------
    UsageError
        If an attack, a setting or an epsilon is unknown or out of range.
    """
    grid = sorted({parse_epsilon(each) for each in epsilons})
    chosen = [parse_attack(each) for each in attacks]
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

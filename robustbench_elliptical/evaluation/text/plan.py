"""Which contaminations run at which rates: what was chosen, and a control for worst cases."""

from collections.abc import Sequence
from typing import NamedTuple

from robustbench_elliptical.attacks.text import TextChoice, check_rate, parse_text_attack
from robustbench_elliptical.core.errors import UsageError

__all__ = ["RANDOM_CONTROL", "PlannedSwap", "plan_swaps"]

RANDOM_CONTROL = "word-swap:replacement=random-word"
"""What a worst-case swap must be at least as strong as."""


class PlannedSwap(NamedTuple):
    """A contamination and the rates it is run at."""

    choice: TextChoice
    rates: tuple[float, ...]
    """Increasing, in [0, 1]."""


def plan_swaps(attacks: Sequence[str], rates: Sequence[str]) -> list[PlannedSwap]:
    """Return the attacks with their rates; the random control of worst-case ones comes first.

    Parameters
    ----------
    attacks
        As ``NAME:key=value,...``.
    rates
        For attacks that state no rate themselves, as ``2.5%`` or ``0.025``.

    Raises
    ------
    UsageError
        If an attack, a setting or a rate is unknown or out of range.
    """
    grid = sorted({check_rate(each) for each in rates})
    chosen = [parse_text_attack(each) for each in attacks]
    control = parse_text_attack(RANDOM_CONTROL)
    worst = [each.rate for each in chosen if each.knowledge != "none"]
    planned: dict[str, tuple[TextChoice, set[float]]] = {}
    if worst:
        sizes = {size for own in worst for size in (grid if own is None else [own])}
        planned[control.label] = (control, sizes)
    for choice in chosen:
        sizes = set(grid if choice.rate is None else [choice.rate])
        known = planned.setdefault(choice.label, (choice, set()))[1]
        if known & sizes and choice.label != control.label:
            raise UsageError(f"attack {choice.label} is given twice at the same rate")
        known.update(sizes)
    return [PlannedSwap(choice, tuple(sorted(sizes))) for choice, sizes in planned.values()]

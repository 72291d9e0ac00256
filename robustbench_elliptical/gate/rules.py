"""The rules of the gate, as a TOML file says them."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.toml import read_toml
from robustbench_elliptical.gate.outputs.escaping import one_line

__all__ = ["FAILURES", "AttackRules", "Failure", "Rules", "read_rules"]

Failure = Literal["regressed", "inconclusive", "findings"]
FAILURES: tuple[Failure, ...] = ("regressed", "inconclusive", "findings")

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(pp|%)\s*")


def _share(unit: str, example: str, most: float) -> BeforeValidator:
    """Return a validator of a text such as ``1.0 pp``: a share above 0 and below `most`."""

    def parse(value: object) -> float:
        found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
        if found is None or found[2] != unit:
            raise ValueError(f'must be a text with its unit, such as "{example}"')
        share = float(found[1]) / 100
        if not 0 < share < most:
            raise ValueError(f"must be more than 0 and less than {100 * most:g} {unit}")
        return share

    return BeforeValidator(parse)


MaxDrop = Annotated[float, _share("pp", "1.0 pp", 0.5)]
MaxIncrease = Annotated[float, _share("%", "2 %", 10.0)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AttackRules(_Record):
    """What one attack may cost, where it departs from the rest."""

    max_drop: MaxDrop | None = None
    """Allowed drop of accuracy, as ``"2 pp"``."""
    max_increase: MaxIncrease | None = None
    """Allowed increase of perplexity, as ``"5 %"``."""


class Rules(_Record):
    """What a checkpoint may lose, and what stops the pipeline."""

    max_drop: MaxDrop = 0.01
    """Allowed drop of accuracy, as ``"1.0 pp"`` (percentage points); a share in [0, 1] here."""
    max_increase: MaxIncrease = 0.02
    """Allowed increase of perplexity, as ``"2 %"``; a share here."""
    alpha: float = Field(default=0.05, gt=0, le=0.5)
    """Probability of any false alarm, over all checks together."""
    power: float = Field(default=0.8, ge=0.5, lt=1)
    """Probability to decide at the number of samples that an inconclusive check recommends."""
    fail_on: tuple[Failure, ...] = ("regressed", "inconclusive")
    """What makes the exit code other than 0."""
    attacks: dict[str, AttackRules] = Field(default_factory=dict)
    """Other limits for an attack, by its label, by its name, or `clean` or `worst-case`."""

    def name(self, names: tuple[str, ...]) -> bool:
        """Return whether an attack known by these names has limits of its own."""
        return any(name in self.attacks for name in names)

    def drop(self, names: tuple[str, ...]) -> float:
        """Return the allowed drop of an attack known by these names, the first that is set."""
        found = [self.attacks[name].max_drop for name in names if name in self.attacks]
        return next((each for each in found if each is not None), self.max_drop)

    def increase(self, names: tuple[str, ...]) -> float:
        """Return the allowed increase; see `drop`."""
        found = [self.attacks[name].max_increase for name in names if name in self.attacks]
        return next((each for each in found if each is not None), self.max_increase)

    def check_names(self, known: set[str]) -> None:
        """Refuse limits for an attack that the baseline lacks: they would never apply.

        Raises
        ------
        UnknownNameError
            With the names that there are.
        """
        for name in self.attacks:
            if name not in known:
                raise UnknownNameError("attack of the rules", name, map(one_line, known))


def read_rules(path: Path | None) -> Rules:
    """Return the rules of a file's ``[gate]`` table, or the defaults.

    Raises
    ------
    UsageError
        If the file can't be read or says something that is no rule.
    """
    if path is None:
        return Rules()
    document = read_toml(path, f"rules {path}")
    other = [name for name in document if name != "gate"]
    if other:
        raise UnknownNameError(f"table of rules {path}", other[0], ["gate"])
    table = document.get("gate", {})
    if not isinstance(table, dict):
        raise UsageError(f"rules {path}: gate must be a table, got {table!r}; write [gate]")
    return validated(Rules, table, f"rules {path}")

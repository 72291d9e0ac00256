"""What the choices of image attacks and of text attacks share: entries, settings and labels."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from robustbench_elliptical.attacks.settings import settings_schema

__all__ = ["Choice", "Entry", "Knowledge"]

Knowledge = Literal["none", "black-box", "white-box"]
"""What an attack sees of the model: nothing, its logits, or its gradients."""


@dataclass(frozen=True)
class Entry:
    """What the toolkit knows about an attack beside its function."""

    name: str
    function: Callable[..., Any]
    """The attack; its keyword-only parameters are its settings."""
    knowledge: Knowledge
    summary: str
    """One line for listings."""
    paper: str
    """Where it comes from; empty for a control or one of our own."""

    @property
    def settings(self) -> type[BaseModel]:
        """The settings model: the function's keyword-only parameters."""
        return settings_schema(self.function)


@dataclass(frozen=True)
class Choice(ABC):
    """An attack with its settings, checked."""

    name: str
    settings: BaseModel
    """An instance of the entry's settings model."""

    @property
    @abstractmethod
    def entry(self) -> Entry:
        """The registered attack."""

    @property
    def knowledge(self) -> Knowledge:
        """What the attack sees of the model."""
        return self.entry.knowledge

    @property
    def label(self) -> str:
        """The name, and in the signature's order whatever differs from the defaults.

        Without the size of the perturbation (epsilon, rate): one attack at several sizes is still
        one attack.
        """
        defaults = type(self.settings)().model_dump(mode="json")
        parts = [
            f"{key}={_text(value)}"
            for key, value in self.resolved().items()
            if value != defaults[key]
        ]
        return f"{self.name}({','.join(parts)})" if parts else self.name

    def resolved(self) -> dict[str, Any]:
        """Return every setting including the defaults, ready for JSON.

        The size of the perturbation is not among them. `of` builds the same choice from it.
        """
        return self.settings.model_dump(mode="json")


def _text(value: object) -> str:
    """Write a value as the command line takes it; multiples of 1/255 as such."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        levels = round(value * 255)
        return f"{levels}/255" if levels > 0 and levels / 255 == value else repr(value)
    return str(value)

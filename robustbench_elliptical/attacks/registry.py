"""The attacks by name, and an attack chosen with its settings: ``pgd:steps=40,restarts=5``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from torch import Tensor

from robustbench_elliptical.attacks.checks import check_epsilon
from robustbench_elliptical.attacks.choice import Choice, Entry, Knowledge
from robustbench_elliptical.attacks.fgsm import fgsm
from robustbench_elliptical.attacks.noise import noise
from robustbench_elliptical.attacks.pgd import pgd
from robustbench_elliptical.attacks.spsa import spsa
from robustbench_elliptical.attacks.vocabulary import Norm
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.oracle import LogitsFunction, Oracle
from robustbench_elliptical.core.registry import Registry
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.specs import parse_spec

__all__ = ["ATTACKS", "AttackChoice", "AttackEntry", "Knowledge", "parse_attack"]


@dataclass(frozen=True)
class AttackEntry(Entry):
    """What the toolkit knows about an attack on images beside its function.

    The function takes (model, inputs, labels, *, epsilon, seed, sample_ids, and its settings) and
    returns the images.
    """

    @property
    def norms(self) -> tuple[Norm, ...]:
        """The norms that its `norm` setting accepts."""
        return get_args(self.settings.model_fields["norm"].annotation)


ATTACKS: Registry[AttackEntry] = Registry("attack")

for _entry in (
    AttackEntry(
        name="noise",
        function=noise,
        knowledge="none",
        summary="random noise of size epsilon, the control",
        paper="",
    ),
    AttackEntry(
        name="fgsm",
        function=fgsm,
        knowledge="white-box",
        summary="one step along the gradient",
        paper="Goodfellow et al. 2015, arXiv 1412.6572",
    ),
    AttackEntry(
        name="pgd",
        function=pgd,
        knowledge="white-box",
        summary="projected gradient steps from random starts, best iterate kept",
        paper="Madry et al. 2018, arXiv 1706.06083",
    ),
    AttackEntry(
        name="spsa",
        function=spsa,
        knowledge="black-box",
        summary="Adam on gradients estimated from pairs of random probes",
        paper="Uesato et al. 2018, arXiv 1802.05666",
    ),
):
    ATTACKS.add(_entry.name, _entry)


@dataclass(frozen=True)
class AttackChoice(Choice):
    """An attack with its settings, checked; build one with `of` or `parse_attack`."""

    epsilon: float | None = None
    """Radius in [0, 1] pixels if the choice has its own, otherwise None."""

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> "AttackChoice":
        """Choose an attack by name, with settings as values or as text.

        Parameters
        ----------
        name
            A registered attack.
        values
            Settings of the attack, and possibly ``epsilon``.

        Raises
        ------
        UnknownNameError
            If there is no such attack or setting.
        UsageError
            If a value is not as the setting needs it.
        """
        given = dict(values)
        epsilon = given.pop("epsilon", None)
        settings = validated(ATTACKS[name].settings, given, f"attack {name}")
        choice = cls(name, settings)
        return choice if epsilon is None else cls(name, settings, choice.check_epsilon(epsilon))

    @property
    def entry(self) -> AttackEntry:
        """The registered attack."""
        return ATTACKS[self.name]

    @property
    def norm(self) -> Norm:
        """The norm that epsilon is measured in."""
        norm: Norm = self.resolved()["norm"]
        return norm

    @property
    def targeted(self) -> bool:
        """Whether the labels are classes to reach; False for an attack that cannot aim."""
        return bool(self.resolved().get("targeted", False))

    def knowing_the_draw(self) -> "AttackChoice":
        """Return the same attack with one draw: enough for a model that draws nothing."""
        if self.resolved().get("draws", 1) == 1:
            return self
        return replace(self, settings=self.settings.model_copy(update={"draws": 1}))

    def check_epsilon(self, epsilon: float | str) -> float:
        """Return `epsilon` as a number; raises `UsageError` if its norm does not allow it."""
        return check_epsilon(epsilon, self.norm)

    def run(
        self,
        model: LogitsFunction | Oracle,
        inputs: Tensor,
        labels: Tensor,
        *,
        epsilon: float | None = None,
        seed: int = 0,
        sample_ids: Sequence[str] | None = None,
    ) -> Tensor:
        """Attack.

        Parameters
        ----------
        model, inputs, labels, seed, sample_ids
            See the attack's function.
        epsilon
            Radius in [0, 1] pixels; the choice's own if None.

        Returns
        -------
        Tensor
            The adversarial images, of the inputs' shape and dtype.

        Raises
        ------
        UsageError
            If there is no epsilon, or the attack refuses an argument.
        """
        radius = self.epsilon if epsilon is None else epsilon
        if radius is None:
            raise UsageError(f"attack {self.name} needs an epsilon, such as epsilon=8/255")
        settings = dict(self.settings)
        adversarial: Tensor = self.entry.function(
            model, inputs, labels, epsilon=radius, seed=seed, sample_ids=sample_ids, **settings
        )
        return adversarial


def parse_attack(text: str) -> AttackChoice:
    """Parse what the command line takes for an attack.

    Parameters
    ----------
    text
        ``NAME`` or ``NAME:key=value,...``, such as ``pgd:steps=40,restarts=5,epsilon=8/255``.

    Raises
    ------
    UnknownNameError
        If there is no such attack or setting; the message suggests some.
    UsageError
        If the text or a value is malformed.
    """
    spec = parse_spec(text, "attack")
    return AttackChoice.of(spec.name, spec.settings)

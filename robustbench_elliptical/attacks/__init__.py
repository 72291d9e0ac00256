"""Attacks on image classifiers: plain functions, and a registry that the command line reads.

Every attack takes ``(model, inputs, labels, *, epsilon, ...)``, with pixels and epsilon in [0, 1],
and returns adversarial inputs. It never believes itself: whether they fool the model is for
`robustbench_elliptical.evaluation` to measure.
"""

from robustbench_elliptical.attacks.fgsm import fgsm
from robustbench_elliptical.attacks.noise import noise
from robustbench_elliptical.attacks.pgd import pgd
from robustbench_elliptical.attacks.registry import (
    ATTACKS,
    AttackChoice,
    AttackEntry,
    parse_attack,
)
from robustbench_elliptical.attacks.spsa import spsa

__all__ = [
    "ATTACKS",
    "AttackChoice",
    "AttackEntry",
    "fgsm",
    "noise",
    "parse_attack",
    "pgd",
    "spsa",
]

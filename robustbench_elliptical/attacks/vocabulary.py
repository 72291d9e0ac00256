"""The words that every attack's settings are written in, each with its constraint.

An annotation of an attack's signature is all that the command line, the settings model and the
documentation know about a setting, so a constraint is stated here once.
"""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

__all__ = [
    "Count",
    "Draws",
    "LinfOnly",
    "LossName",
    "NoiseKind",
    "Norm",
    "OptionalPixels",
    "PairRows",
    "Pixels",
]


def _number(value: object) -> object:
    """Turn ``2/255`` into a float and leave everything else to pydantic."""
    if not isinstance(value, str):
        return value
    try:
        return float(Fraction(value.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError("must be a number such as 2/255 or 0.008") from None


Norm = Literal["linf", "l2"]
"""How a perturbation is measured: its largest absolute pixel change, or its Euclidean length."""

LinfOnly = Literal["linf"]
"""The norm of an attack that knows only the largest absolute pixel change."""

LossName = Literal["cross-entropy", "margin", "dlr"]
"""What a gradient attack increases; see `robustbench_elliptical.attacks.losses`."""

NoiseKind = Literal["sign", "uniform"]
"""Random signs, or draws spread uniformly."""

Count = Annotated[int, Field(ge=1)]
"""How many steps, restarts or samples."""

Draws = Annotated[int, Field(ge=1)]
"""How many random draws of the model an attack averages its loss over (expectation over
transformation, Athalye et al. 2018, arXiv 1707.07397); 1: it knows the draw it is judged by."""

PairRows = Annotated[int, Field(ge=2)]
"""How many images one forward may hold, where they come in pairs."""


def _within_the_range(value: float) -> float:
    if value > 1:
        raise ValueError(f"must be at most 1 in [0, 1] pixels (did you mean {value:g}/255?)")
    return value


Pixels = Annotated[
    float,
    BeforeValidator(_number),
    Field(gt=0, allow_inf_nan=False),
    AfterValidator(_within_the_range),
]
"""A positive length of at most 1 in [0, 1] pixels, also written as ``2/255``."""

OptionalPixels = Pixels | None
"""The same, or None for the attack's documented rule."""

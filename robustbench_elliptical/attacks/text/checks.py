"""What a contamination refuses before it starts, and the check of its settings."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.settings import settings_schema
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.specs import parse_number

__all__ = ["check_rate", "check_tokens", "check_words", "checked_as"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def check_rate(rate: float | str) -> float:
    """Return a rate such as 0.025 or ``2.5%``; raises `UsageError` unless it lies in [0, 1]."""
    if isinstance(rate, str):
        number, percent, rest = rate.strip().partition("%")
        value = math.nan if rest else parse_number(number) / (100 if percent else 1)
    else:
        value = float(rate)
    if not 0 <= value <= 1:
        slip = (
            f": did you mean {value / 100:g}?" if 1 < value <= 100 and "%" not in str(rate) else ""
        )
        given = repr(rate) if math.isnan(value) else rate
        raise UsageError(f"rate must be a number between 0 and 1, got {given}{slip}")
    return value


def check_words(words: Sequence[str]) -> Sequence[str]:
    """Return the words; raises `UsageError` if they are one text or not all strings."""
    if isinstance(words, str):
        raise UsageError("words must be a list of words, got one text: split it")
    for word in words:
        if not isinstance(word, str):
            raise UsageError(f"words must be strings, got {word!r}")
    return words


def check_tokens(tokens: npt.NDArray[np.integer], words: int) -> npt.NDArray[np.int64]:
    """Return the tokens as int64; raises `UsageError` unless they number `words` words."""
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        raise UsageError(
            f"tokens must be whole numbers of shape (words,), got {tokens.dtype} of shape "
            f"{tokens.shape}"
        )
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < words:
        raise UsageError(
            f"tokens must lie in 0..{words - 1}, the vocabulary's words, got {tokens.min()} to "
            f"{tokens.max()}"
        )
    return tokens.astype(np.int64)


def checked_as(name: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let the attack `name` refuse settings that its signature forbids.

    A direct call and the command line then accept the same values and get the same messages.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        any_result: Callable[..., Any] = function
        schema = settings_schema(any_result)

        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            fields = schema.model_fields.items()
            given = {key: kwargs.get(key, field.default) for key, field in fields}
            kwargs.update(validated(schema, given, f"attack {name}"))
            return function(*args, **kwargs)

        return call

    return decorate

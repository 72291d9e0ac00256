"""Settings models derived from the attacks' signatures, so that neither drifts from the other."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

from pydantic import BaseModel, ConfigDict, create_model
from torch import Tensor

from robustbench_elliptical.core.settings import validated

__all__ = ["NOT_SETTINGS", "checked", "settings_schema"]

Parameters = ParamSpec("Parameters")

NOT_SETTINGS = frozenset({"epsilon", "seed", "sample_ids"})
"""Keyword arguments that belong to a run, not to an attack's settings."""


def settings_schema(function: Callable[..., Tensor]) -> type[BaseModel]:
    """Return the settings model of an attack: its keyword-only parameters, with their constraints.

    Parameters
    ----------
    function
        An attack. Every keyword-only parameter other than `NOT_SETTINGS` needs a default.

    Returns
    -------
    type[BaseModel]
        Frozen, without further fields; the same class at each call.
    """
    return _schema(inspect.unwrap(function))


@functools.cache
def _schema(function: Callable[..., Tensor]) -> type[BaseModel]:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, each.default)
        for each in parameters
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name not in NOT_SETTINGS
    }
    config = ConfigDict(extra="forbid", frozen=True)
    schema: type[BaseModel] = create_model(
        f"{function.__name__.capitalize()}Settings", __config__=config, **fields
    )
    return schema


def checked(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """Let an attack refuse settings that its signature forbids.

    A direct call and the command line then accept the same values and get the same messages.
    """
    schema = settings_schema(function)
    subject = f"attack {function.__name__}"

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        given = {name: value for name, value in kwargs.items() if name in schema.model_fields}
        settings = validated(schema, given, subject)
        kwargs.update({name: getattr(settings, name) for name in given})
        return function(*args, **kwargs)

    return call

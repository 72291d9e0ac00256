"""The language decoder as data: what a card or a recipe states, and the model built from it."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.attention import MECHANISMS, setting_behind
from robustbench_elliptical.models.language.decoder import LanguageModel

__all__ = [
    "BigramArchitecture",
    "DecoderArchitecture",
    "DecoderSizes",
    "build_language_model",
    "check_causal_settings",
]

_MUST_STATE = {"elliptical": {"metric_scope": "window or prefix", "scale": "sqrt or none"}}
"""Settings with several honest values that nothing in a checkpoint tells apart."""


class DecoderSizes(BaseModel):
    """Sizes of a post-norm decoder, but for its vocabulary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Literal["decoder"] = "decoder"
    """Which builder makes the network."""
    layers: int = Field(ge=1)
    """Number of decoder layers."""
    d_model: int = Field(ge=2, multiple_of=2)
    """Width of a token."""
    num_heads: int = Field(ge=1)
    """Attention heads a layer."""
    d_head: int = Field(ge=1)
    """Width of a head; heads need not fill d_model."""
    d_inner: int = Field(ge=1)
    """Hidden width of the feed-forward networks."""
    context_length: int = Field(ge=1)
    """Length of a training window."""
    cutoffs: tuple[int, ...] = ()
    """Cut-offs of the adaptive softmax, rising and below vocab_size; none: plain softmax."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate in training."""


class DecoderArchitecture(DecoderSizes):
    """Sizes of a post-norm decoder and its vocabulary."""

    vocab_size: int = Field(ge=2)
    """Number of words."""

    @model_validator(mode="after")
    def _cutoffs_rise(self) -> "DecoderArchitecture":
        bounds = (0, *self.cutoffs, self.vocab_size)
        if any(left >= right for left, right in pairwise(bounds)):
            raise ValueError(
                f"cutoffs must rise from 1 to at most {self.vocab_size - 1}, "
                f"got {list(self.cutoffs)}"
            )
        return self


class BigramArchitecture(BaseModel):
    """Sizes of a smoothed bigram model: the sanity floor that any decoder must beat."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Literal["bigram"] = "bigram"
    """Which builder makes the network."""
    vocab_size: int = Field(ge=2)
    """Number of words."""
    pairs: int = Field(ge=1)
    """Number of different pairs of words that it has seen."""
    context_length: int = Field(default=256, ge=1)
    """Length of the windows it is measured in; one word of context is all it reads."""


def build_language_model(
    architecture: DecoderArchitecture,
    attention: AttentionChoice,
    *,
    overrides: Mapping[str, Any] | None = None,
) -> LanguageModel:
    """Build the model, initialised from torch's global generator.

    Parameters
    ----------
    architecture, attention
        What to build.
    overrides
        Attention settings that replace those of `attention`.

    Raises
    ------
    UsageError
        If the mechanism or a setting is unknown or out of range, the mechanism has no causal form,
        or a setting that must be stated is left out.
    """
    settings = {**attention.settings, **(overrides or {})}
    check_causal_settings(attention.mechanism, settings)
    sizes = architecture.model_dump(exclude={"family"})
    return LanguageModel(attention.mechanism, settings, **sizes)


def check_causal_settings(mechanism: str, settings: Mapping[str, Any]) -> None:
    """Refuse attention that no language model can have.

    Parameters
    ----------
    mechanism, settings
        Registered name, and the settings stated for it, without its defaults.

    Raises
    ------
    UsageError
        If the mechanism has no causal form, at all or with these settings, or a setting is unknown,
        out of range or must be stated and is left out. A causal form that leaks is taken, as
        published; `causality_probe` measures it.
    """
    kind = MECHANISMS[mechanism]
    if kind.capabilities.causal == "no":
        raise UsageError(
            f"attention {mechanism} has no causal form; choose another for a language model"
        )
    choices = _MUST_STATE.get(mechanism, {})
    missing = {name: values for name, values in choices.items() if name not in settings}
    if missing:
        stated = " and ".join(f"{name} ({values})" for name, values in missing.items())
        raise UsageError(
            f"attention {mechanism} of a language model must state {stated}: no checkpoint tells "
            "which it was trained with"
        )
    checked = validated(kind.Settings, settings, f"attention {mechanism}")
    if kind.capabilities_for(checked).causal == "no":
        behind = setting_behind(kind, checked, "causal")
        setting = behind.name if behind else "attention"
        reason = f" with {behind.name}={behind.value}" if behind else ""
        raise UsageError(
            f"attention {mechanism} has no causal form{reason}; "
            f"choose another {setting} for a language model"
        )

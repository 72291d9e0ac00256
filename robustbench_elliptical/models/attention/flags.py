"""A mechanism's capabilities in words, and the settings that they come from."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    MechanismSettings,
)

__all__ = [
    "FlagNote",
    "SettingBehind",
    "capabilities_of",
    "flag_notes",
    "flag_words",
    "setting_behind",
]

_CAUSAL = {
    "exact": "no output depends on later tokens under a causal mask",
    "leaks": "it takes a causal mask, but later tokens reach earlier outputs, as published",
    "no": "it has no causal form, so no language model can have it",
}
_MEANINGS = {
    "fixed_length": "takes no more tokens than it was built for",
    "stochastic": "draws for each sample; evaluations freeze the draw by a seed and the sample's "
    "key and take no expectation over draws",
    "batch_coupled": "what a sample gets depends on the other samples of its batch",
    "detached_statistics": "gradients skip a statistic of the input; gradient_mode=through lets "
    "them flow",
    "auxiliary_loss": "training adds a loss of the mechanism's own",
}
_WORDS = {
    "fixed_length": "fixed-length",
    "stochastic": "stochastic",
    "batch_coupled": "batch-coupled",
    "detached_statistics": "detached",
    "auxiliary_loss": "auxiliary-loss",
}


class FlagNote(NamedTuple):
    """One flag in words."""

    word: str
    """Its name."""
    value: str
    """``yes`` or ``no``; of the causal form ``exact``, ``leaks`` or ``no``."""
    meaning: str
    """What the value means, with the setting behind it; empty where the flag is not set."""


class SettingBehind(NamedTuple):
    """The setting that makes a flag what it is."""

    name: str
    value: Any
    """What it is."""
    default: Any
    """What it would be if nobody had set it."""


def capabilities_of(mechanism: str, settings: Mapping[str, Any]) -> Capabilities:
    """Return the flags of a registered mechanism under settings as a card states them.

    Raises
    ------
    UsageError
        If the name is unknown, or a setting is unknown, missing or out of range.
    """
    return MECHANISMS[mechanism].capabilities_for(_checked(mechanism, settings))


def setting_behind(
    mechanism: type[AttentionMechanism], settings: MechanismSettings, flag: str
) -> SettingBehind | None:
    """Return the setting without which a flag would have another value; None: it always has it."""
    value = getattr(mechanism.capabilities_for(settings), flag)
    found = None
    for name, field in type(settings).model_fields.items():
        if field.is_required() or getattr(settings, name) == field.default:
            continue
        without = settings.model_copy(update={name: field.default})
        if getattr(mechanism.capabilities_for(without), flag) != value:
            found = SettingBehind(name, getattr(settings, name), field.default)
    return found


def flag_notes(mechanism: str, settings: Mapping[str, Any]) -> list[FlagNote]:
    """Return every flag of a mechanism under given settings, that of the causal form first.

    Raises
    ------
    UsageError
        As `capabilities_of` does.
    """
    checked, kind = _checked(mechanism, settings), MECHANISMS[mechanism]
    flags = kind.capabilities_for(checked)
    notes = [_note(kind, checked, "causal", "causal", flags.causal, _CAUSAL[flags.causal])]
    for flag, word in _WORDS.items():
        holds = bool(getattr(flags, flag))
        if flag == "detached_statistics":
            holds = holds and getattr(checked, "gradient_mode", "detached") == "detached"
        value, meaning = ("yes", _MEANINGS[flag]) if holds else ("no", "")
        notes.append(_note(kind, checked, flag, word, value, meaning))
    return notes


def flag_words(
    mechanism: str, settings: Mapping[str, Any], *, causal_mask: bool
) -> tuple[str, ...]:
    """Return the words of the flags that are set.

    Parameters
    ----------
    mechanism, settings
        Registered name and settings, as a card states them.
    causal_mask
        Whether the model is one that has a causal mask, a language model; whether it is exactly
        causal then comes first.

    Raises
    ------
    UsageError
        As `capabilities_of` does.
    """
    causal, *others = flag_notes(mechanism, settings)
    first = ("causal" if causal.value == "exact" else "not causal",) if causal_mask else ()
    return (*first, *(each.word for each in others if each.value == "yes"))


def _checked(mechanism: str, settings: Mapping[str, Any]) -> MechanismSettings:
    return validated(MECHANISMS[mechanism].Settings, settings, f"attention {mechanism}")


def _note(
    kind: type[AttentionMechanism],
    settings: MechanismSettings,
    flag: str,
    word: str,
    value: str,
    meaning: str,
) -> FlagNote:
    behind = setting_behind(kind, settings, flag) if meaning else None
    because = f" (by {behind.name}={behind.value})" if behind else ""
    return FlagNote(word, value, meaning + because)

"""Every setting of a card's attention, overrides included."""

from collections.abc import Mapping
from typing import Any

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.attention import MECHANISMS
from robustbench_elliptical.models.cards.image import ImageCard
from robustbench_elliptical.models.cards.language import LanguageCard
from robustbench_elliptical.models.language.architecture import check_causal_settings

__all__ = ["resolved_attention"]


def resolved_attention(
    card: ImageCard | LanguageCard, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return every setting of the card's attention, defaults and `overrides` included.

    Raises
    ------
    UsageError
        If the mechanism or a setting is unknown or out of range, there is no attention to
        override, or a language model's card leaves out a setting that it must state.
    """
    if card.attention is None:
        if overrides:
            raise UsageError(
                f"model {card.name} has no attention, so it takes no setting of one, "
                f"got {', '.join(overrides)}"
            )
        return {}
    name = card.attention.mechanism
    chosen = {**card.attention.settings, **(overrides or {})}
    settings = validated(MECHANISMS[name].Settings, chosen, f"attention {name}")
    if isinstance(card, LanguageCard):
        check_causal_settings(name, chosen)
    return settings.model_dump(mode="json")

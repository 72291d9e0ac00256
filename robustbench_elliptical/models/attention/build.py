"""Build a mechanism for one block from its registered name and settings."""

from collections.abc import Mapping
from typing import Any

from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    LayerShape,
)

__all__ = ["build_mechanism"]


def build_mechanism(
    name: str, layer: LayerShape, settings: Mapping[str, Any]
) -> AttentionMechanism:
    """Return the mechanism `name` for the block `layer`.

    Raises
    ------
    UsageError
        If the name is unknown, or a setting is unknown, missing or out of range.
    """
    mechanism = MECHANISMS[name]
    checked = validated(mechanism.Settings, settings, f"attention {name}")
    return mechanism(layer, checked)

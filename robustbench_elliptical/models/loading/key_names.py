"""What tensors are called in checkpoints of other code, and in this project's networks."""

from collections.abc import Mapping

from torch import Tensor

from robustbench_elliptical.models.cards import ImageCard

__all__ = ["with_own_names"]

_OF_FAMILY = {"fan": {"pos_embeder.": "pos_embed."}}
"""By family: how older files begin a name (FAN's first ones have XCiT's spelling)."""
_OF_MECHANISM = {"rvt_paas": {".attn.att_mask": ".attn.mechanism.position_logits"}}
"""By mechanism: how released files end the name of its parameter (RVT and robust KDE)."""


def with_own_names(state: Mapping[str, Tensor], card: ImageCard) -> dict[str, Tensor]:
    """Return a checkpoint's tensors by the names that the card's network gives them.

    Names of other releases than the card's are left as they are, and so is a tensor that is there
    under both names: strict loading then says so.
    """
    begins = _OF_FAMILY.get(card.architecture.family, {})
    ends = _OF_MECHANISM.get(card.attention.mechanism, {})
    renamed: dict[str, Tensor] = {}
    for name, tensor in state.items():
        own = _own_name(name, begins, ends)
        renamed[name if own in state else own] = tensor
    return renamed


def _own_name(name: str, begins: Mapping[str, str], ends: Mapping[str, str]) -> str:
    for old, new in begins.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    for old, new in ends.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name

"""The weights for a card, and what they change about its name and its promises."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import capabilities_of
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.cards import Card, checkpoint_path
from robustbench_elliptical.models.checkpoints import WeightsKind, read_checkpoint
from robustbench_elliptical.models.hashing import check_sha256, file_sha256
from robustbench_elliptical.models.loading.finding import FoundCard

__all__ = ["Weights", "count_parameters", "full_name", "gradient_mode", "read_weights"]


class Weights(NamedTuple):
    """Weights read from a file."""

    state: dict[str, Tensor]
    path: Path
    sha256: str
    kind: WeightsKind
    brought: bool
    """Whether the user chose them although the card has its own."""

    def keep_promises(self, overrides: Mapping[str, Any]) -> bool:
        """Return whether what the card measured holds for them under these overrides.

        That is so for the card's own weights, used as it says they are to be.
        """
        changes_outputs = bool(set(overrides) - {"gradient_mode"})
        return not self.brought and not changes_outputs and self.kind == "model"


def read_weights(found: FoundCard, kind: WeightsKind) -> Weights:
    """Read the checkpoint that the user chose, or else the card's own.

    Raises
    ------
    UsageError
        If there is none, it can't be read, or the card's own is not the file that it states.
    """
    card = found.card
    own = checkpoint_path(card, found.path)
    path = found.checkpoint or own
    if path is None:
        raise UsageError(
            f"model {card.name} comes without weights; give yours with checkpoint=PATH"
        )
    expected = card.checkpoint.sha256 if card.checkpoint and not found.checkpoint else None
    state = read_checkpoint(path, weights=kind)
    sha256 = check_sha256(path, expected) if expected else file_sha256(path)
    brought = found.checkpoint is not None and own is not None
    return Weights(state, path, sha256, kind, brought)


def full_name(card: Card, overrides: Mapping[str, Any], weights: Weights) -> str:
    """Return the card's name with everything in which the model departs from it."""
    name = card.name
    name += "".join(f",{key}={_setting_text(overrides[key])}" for key in sorted(overrides))
    if weights.brought:
        name += f",checkpoint={weights.path.stem}"
    if weights.kind != "model":
        name += f",weights={weights.kind}"
    return name


def gradient_mode(card: Card, settings: Mapping[str, Any]) -> GradientMode | None:
    """Return the mode that resolved attention settings state; none where nothing is detached."""
    if card.attention is None:
        return None
    if not capabilities_of(card.attention.mechanism, settings).detached_statistics:
        return None
    mode: GradientMode = settings.get("gradient_mode", "detached")
    return mode


def count_parameters(network: nn.Module) -> int:
    """Return the number of trainable and frozen parameters."""
    return sum(each.numel() for each in network.parameters())


def _setting_text(value: Any) -> str:
    """Return an attention setting as the command line writes it: lists joined by ``+``."""
    if isinstance(value, list | tuple):
        return "+".join(str(each) for each in value)
    return str(value)

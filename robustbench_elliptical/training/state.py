"""The resumable state of a training: saved whole, refused if it doesn't fit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from robustbench_elliptical.core.errors import UsageError

__all__ = ["TrainingParts", "load_state", "save_state"]


class TrainingParts(NamedTuple):
    """Everything that changes while a network is trained."""

    network: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: LambdaLR
    losses: list[float]
    """Mean training loss of every finished epoch (images) or step (language): its length says how
    many are done."""


def save_state(path: Path, parts: TrainingParts, identity: Mapping[str, Any]) -> None:
    """Write the state to `path`, then rename it into place."""
    state = {
        "identity": dict(identity),
        "losses": parts.losses,
        "network": parts.network.state_dict(),
        "optimizer": parts.optimizer.state_dict(),
        "schedule": parts.schedule.state_dict(),
    }
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def load_state(path: Path, parts: TrainingParts, identity: Mapping[str, Any]) -> None:
    """Continue `parts` from `path` if that file exists.

    Raises
    ------
    UsageError
        If the file is unreadable, or was made by another recipe, mechanism, seed or data set.
    """
    if not path.exists():
        return
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:  # torch raises many kinds for a broken file
        raise UsageError(
            f"training state {path} is broken ({type(error).__name__}); delete it to start anew"
        ) from None
    differing = [key for key, value in identity.items() if state["identity"].get(key) != value]
    if differing:
        raise UsageError(
            f"training state {path} was made with another {', '.join(differing)}; "
            "choose another --output or delete it to start anew"
        )
    parts.network.load_state_dict(state["network"])
    parts.optimizer.load_state_dict(state["optimizer"])
    parts.schedule.load_state_dict(state["schedule"])
    parts.losses[:] = state["losses"]

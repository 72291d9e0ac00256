"""Classifiers that timm defines: the network comes from timm, the weights from the user.

Nothing is ever downloaded. Normalisation, input size and cropping are those that timm states for
the model's default weights (or for those that a tag after the dot names).
"""

import math
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import timm
from timm.data import resolve_data_config
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.models.cards import InputNormalisation

__all__ = ["PREFIX", "build_timm", "timm_data_config", "with_timm_names"]

PREFIX = "timm:"
_COMPUTED = ("relative_position_index", "attn_mask")
"""Ends of names that older files store although a network computes them."""


def build_timm(name: str) -> nn.Module:
    """Return timm's model `name` (without ``timm:``), untrained.

    Raises
    ------
    UsageError
        If timm has no such classifier.
    """
    base = name.partition(".")[0]
    if not timm.is_model(base):
        names = timm.list_models()
        if get_close_matches(base, names, n=1, cutoff=0.5):
            raise UnknownNameError("timm model", base, names)
        raise UsageError(f"unknown timm model {base!r}: timm.list_models() lists all {len(names)}")
    try:
        network: nn.Module = timm.create_model(name, pretrained=False)
    except RuntimeError as error:
        raise UsageError(f"timm cannot build model {name!r}: {error}") from None
    if getattr(network, "num_classes", 0) < 2:
        raise UsageError(f"timm model {name!r} has no classifier; give one that has")
    return network


def with_timm_names(state: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint by the names that timm has for them today.

    timm knows how the authors of each architecture, and its own older versions, named them. A
    translation that would lose, invent or resize a tensor is not used: strict loading then says
    what doesn't fit.

    Parameters
    ----------
    state
        Tensors by any name; returned as they are where they already have the network's names, or
        timm can't translate them.
    network
        What `build_timm` returns.
    """
    given = dict(state)
    translate = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    if given.keys() == network.state_dict().keys() or translate is None:
        return given
    try:
        translated: dict[str, Tensor] = translate(dict(given), network)
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError):
        return given
    known = {name: each for name, each in given.items() if not name.endswith(_COMPUTED)}
    return translated if _numbers(translated) == _numbers(known) else given


def _numbers(state: Mapping[str, Tensor]) -> int:
    return sum(each.numel() for each in state.values())


def timm_data_config(
    network: nn.Module,
) -> tuple[tuple[int, int, int], InputNormalisation, Preprocessing | None]:
    """Return a timm network's input shape, normalisation and preprocessing."""
    config: dict[str, Any] = resolve_data_config({}, model=network)
    channels, height, width = config["input_size"]
    normalisation = InputNormalisation(mean=config["mean"], std=config["std"])
    preprocessing = None
    if height == width and channels in (1, 3) and config["crop_mode"] in ("center", "squash"):
        preprocessing = Preprocessing(
            image_size=height,
            resize=math.floor(height / config["crop_pct"]),
            crop=config["crop_mode"],
            interpolation=config["interpolation"],
            channels=channels,
        )
    return (channels, height, width), normalisation, preprocessing

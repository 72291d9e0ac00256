"""Classifiers that timm defines: the network comes from timm, the weights from the user.

Nothing is ever downloaded. Normalisation, input size and cropping are those that timm states for
the model's default weights (or for those that a tag after the dot names).
"""

import math
from difflib import get_close_matches
from typing import Any

import timm
from timm.data import resolve_data_config
from torch import nn

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.models.cards import InputNormalisation

__all__ = ["PREFIX", "build_timm", "timm_data_config"]

PREFIX = "timm:"


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

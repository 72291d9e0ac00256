"""Pictures as they are shown: the difference made visible, attention laid over the image."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.reports.blocks.pictures import Picture

__all__ = ["Pixels", "amplification", "amplified", "grey", "overlay", "upright"]

Pixels = npt.NDArray[np.float64]
"""Shape (height, width, 3), in [0, 1]."""

_OVERLAY = np.array([0.902, 0.624, 0.0])
"""The orange of Okabe & Ito 2008: seen on black and on white."""

_OPACITY = 0.85
"""Of the overlay where attention is largest."""


def upright(image: npt.NDArray[np.float64]) -> Pixels:
    """Turn (channels, height, width) into something to show; other than 3 channels become grey."""
    channels = image if len(image) == 3 else np.repeat(image.mean(axis=0, keepdims=True), 3, axis=0)
    return np.ascontiguousarray(np.moveaxis(channels, 0, -1))


def grey(image: npt.NDArray[np.float64]) -> Pixels:
    """Return the luminance (ITU-R BT.601) of (channels, height, width) as shades of grey."""
    shown = upright(image) @ np.array([0.299, 0.587, 0.114])
    return np.repeat(shown[..., None], 3, axis=-1)


def amplification(pictures: Sequence[Picture]) -> int:
    """Return the whole factor that stretches the largest difference of the pictures to 0.5."""
    largest = max(float(np.abs(each.attacked - each.clean).max()) for each in pictures)
    return max(1, int(0.5 / largest)) if largest > 0 else 1


def amplified(picture: Picture, factor: int) -> Pixels:
    """Return the difference times a factor around mid grey: no change is 0.5."""
    return upright(np.clip(0.5 + factor * (picture.attacked - picture.clean), 0.0, 1.0))


def overlay(image: npt.NDArray[np.float64], attention: Pixels, largest: float) -> Pixels:
    """Lay attention over a grey image.

    Parameters
    ----------
    image
        Shape (channels, height, width).
    attention
        Shape (rows, columns): each value covers its patch.
    largest
        The attention that is laid on at full strength.
    """
    base = grey(image)
    height, width = base.shape[:2]
    down = np.arange(height) * attention.shape[0] // height
    right = np.arange(width) * attention.shape[1] // width
    strength = (
        attention[np.ix_(down, right)] / largest if largest > 0 else np.zeros((height, width))
    )
    opacity = _OPACITY * np.clip(strength, 0.0, 1.0)[..., None]
    shown: Pixels = (1 - opacity) * base + opacity * _OVERLAY
    return shown

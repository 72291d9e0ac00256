"""What an attack refuses before it starts, each with a sentence that says the way out."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from robustbench_elliptical.attacks.vocabulary import LossName, Norm
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.specs import parse_epsilon

__all__ = [
    "RANGE_TOLERANCE",
    "check_epsilon",
    "check_images",
    "check_labels",
    "check_logits",
    "check_sample_ids",
    "check_seed",
]

RANGE_TOLERANCE = 1e-6
"""How far a pixel may lie outside [0, 1]; it is clamped."""


def check_epsilon(epsilon: float | str, norm: Norm, pixels: int | None = None) -> float:
    """Return `epsilon` as a number if it is a possible distance in [0, 1] pixels.

    Parameters
    ----------
    epsilon
        The largest allowed distance, also as text such as ``8/255``.
    norm
        Which distance.
    pixels
        Number of pixel values of one image, which bounds an l2 distance by its square root; None
        where no image is at hand.

    Raises
    ------
    UsageError
        If it is not a number, negative, or larger than the unit box allows.
    """
    value = parse_epsilon(epsilon)
    if norm == "linf":
        largest, where = 1.0, "in [0, 1] pixels"
    elif pixels is None:
        return value
    else:
        largest, where = math.sqrt(pixels), "for norm l2, the diameter of the unit box"
    if value > largest:
        slip = f": did you mean {value:g}/255?" if value <= 255 * largest else ""
        raise UsageError(f"epsilon must be between 0 and {largest:g} {where}, got {value:g}{slip}")
    return value


def check_images(images: Tensor) -> Tensor:
    """Return the images detached and clamped to [0, 1].

    Raises
    ------
    UsageError
        If they are not floating point, lack a pixel dimension, are not finite, or lie outside
        [0, 1] by more than `RANGE_TOLERANCE`.
    """
    if not images.is_floating_point():
        raise UsageError(
            f"images must be floating point in [0, 1], got {images.dtype}: divide by 255"
        )
    if images.dim() < 2:
        raise UsageError(f"images must have shape (batch, ...), got {tuple(images.shape)}")
    images = images.detach()
    if images.numel() == 0:
        return images
    low, high = (float(each) for each in torch.stack(torch.aminmax(images)).tolist())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise UsageError("images must be finite, got NaN or infinite pixels")
    if low < -RANGE_TOLERANCE or high > 1 + RANGE_TOLERANCE:
        raise UsageError(
            f"images must lie in [0, 1], got {low:g} to {high:g}: "
            "put the normalisation inside the model"
        )
    return images.clamp(0, 1) if low < 0 or high > 1 else images


def check_labels(labels: Tensor, batch: int) -> Tensor:
    """Return the labels as int64.

    Raises
    ------
    UsageError
        If they are not whole numbers, negative, or not of shape (batch,).
    """
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise UsageError(f"labels must be class numbers (int64), got {labels.dtype}")
    if tuple(labels.shape) != (batch,):
        raise UsageError(f"labels must have shape ({batch},), got {tuple(labels.shape)}")
    labels = labels.detach().long()
    if batch and int(labels.min()) < 0:
        raise UsageError(f"labels must be 0 or more, got {int(labels.min())}")
    return labels


def check_sample_ids(sample_ids: Sequence[str] | None, batch: int) -> Sequence[str]:
    """Return one id for each sample: the given ones, or "0", "1", ... by position.

    Raises
    ------
    UsageError
        If their number is not `batch`.
    """
    if sample_ids is None:
        return [str(position) for position in range(batch)]
    if len(sample_ids) != batch:
        raise UsageError(f"sample_ids must hold {batch} ids, one an image, got {len(sample_ids)}")
    return sample_ids


def check_seed(seed: object) -> int:
    """Return the seed; raises `UsageError` if it is not a whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed must be a whole number of 0 or more, got {seed!r}")
    return seed


def check_logits(
    logits: Tensor, rows: int, highest_label: int, loss: LossName, *, targeted: bool
) -> None:
    """Refuse a model's answer that is not logits for these rows and labels.

    Raises
    ------
    UsageError
        If the shape is not (rows, classes), a label is no class, or the loss needs more classes.
    """
    if logits.dim() != 2 or logits.shape[0] != rows:
        raise UsageError(
            f"model must return logits of shape ({rows}, classes), got {tuple(logits.shape)}"
        )
    classes = logits.shape[1]
    if highest_label >= classes:
        raise UsageError(
            f"labels must lie in 0..{classes - 1} for a model of {classes} classes, "
            f"got {highest_label}"
        )
    least = (4 if targeted else 3) if loss == "dlr" else 2
    if classes < least:
        way_out = ": use loss=margin" if loss == "dlr" and classes >= 2 else ""
        kind = f"targeted loss {loss}" if targeted else f"loss {loss}"
        raise UsageError(f"{kind} needs at least {least} classes, got {classes}{way_out}")

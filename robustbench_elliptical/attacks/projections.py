"""Steps and projections of the linf and l2 balls, each inside the box of pixels [0, 1]."""

import torch
from torch import Tensor

from robustbench_elliptical.attacks.vocabulary import Norm

__all__ = ["project", "round_toward", "sample_lengths", "scaled_direction"]


def project(points: Tensor, origins: Tensor, epsilon: float, norm: Norm) -> Tensor:
    """Return the points moved into the ball around their origins, then into [0, 1].

    Moving into the box comes last: its origin lies in the box, so no pixel gets further away.

    Parameters
    ----------
    points, origins
        Shape (batch, ...), of the same dtype, at least float32; the origins in [0, 1].
    epsilon
        Radius in [0, 1] pixels. For l2 it is shrunk by one unit of rounding, so that the length of
        the result, measured anew, does not exceed it.
    norm
        Which ball.
    """
    offsets = points - origins
    if norm == "linf":
        offsets.clamp_(-epsilon, epsilon)
    else:
        radius = epsilon * (1 - torch.finfo(offsets.dtype).eps)
        lengths = sample_lengths(offsets)
        shrink = torch.where(lengths > radius, radius / lengths, 1.0)
        offsets.mul_(_per_sample(shrink, offsets))
    return offsets.add_(origins).clamp_(0, 1)


def scaled_direction(gradient: Tensor, length: float, norm: Norm) -> Tensor:
    """Return the steepest step of the given length: the sign for linf, the unit vector for l2.

    A zero gradient gives a zero step, and so does a NaN one (each pixel of its own for linf, the
    whole sample for l2).
    """
    if norm == "linf":
        return gradient.sign().mul_(length)
    lengths = sample_lengths(gradient)
    usable = torch.isfinite(lengths)
    largest = torch.finfo(gradient.dtype).max
    factors = (length / lengths).clamp_max_(largest)
    unusable = ~_per_sample(usable, gradient)
    return (gradient * _per_sample(factors, gradient)).masked_fill_(unusable, 0.0)


def sample_lengths(offsets: Tensor) -> Tensor:
    """Return the Euclidean length of each sample, float64, shape (batch,).

    Summed in float64: a float32 sum over an image's pixels is off by more than 1e-6.
    """
    lengths: Tensor = torch.linalg.vector_norm(offsets.flatten(1), dim=1, dtype=torch.float64)
    return lengths


def round_toward(points: Tensor, origins: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the points in `dtype`, rounded toward their origins.

    Rounding to nearest could leave the ball by half a unit of rounding, which is 0.002 in bfloat16.
    Returns the points themselves if they have that dtype.

    Parameters
    ----------
    points
        Shape (batch, ...), in [0, 1].
    origins
        The same shape; numbers that `dtype` holds exactly, in [0, 1].
    dtype
        float16, bfloat16, or the dtype of the points.
    """
    if points.dtype == dtype:
        return points
    rounded = points.to(dtype)
    offsets = rounded.to(points.dtype) - origins
    further = offsets.abs() > (points - origins).abs()
    steps = torch.where(further, -offsets.sign(), 0.0).to(torch.int16)
    return (rounded.abs().view(torch.int16) + steps).view(dtype)


def _per_sample(values: Tensor, like: Tensor) -> Tensor:
    """Return one value a sample, shaped to broadcast over `like`."""
    shaped = values.view(-1, *[1] * (like.dim() - 1))
    return shaped if values.dtype == torch.bool else shaped.to(like.dtype)

"""Never believe the attack: measure the distance, check the range, predict again."""

from typing import NamedTuple

import torch
from torch import Tensor

from robustbench_elliptical.evaluation.images.counter import CountingOracle

__all__ = ["TOLERANCE", "Verdict", "distances", "predict", "verify"]

TOLERANCE = 1e-6
"""How far a point may lie outside the ball or [0, 1]: float32 rounding."""


class Verdict(NamedTuple):
    """What the evaluator found about each sample; every field has shape (samples,)."""

    fooled: Tensor
    """Wrong prediction by a valid point."""
    failed: Tensor
    """No usable answer."""
    predictions: Tensor
    """int64; -1 where the logits are not finite."""
    distances: Tensor
    """In the attack's norm, [0, 1] pixels."""
    reasons: list[str]
    """Why a sample failed, else empty."""


def distances(points: Tensor, originals: Tensor, norm: str) -> Tensor:
    """Return the distance of each point to its original, shape (samples,), float64."""
    difference = (points.double() - originals.double()).flatten(1)
    order = 2 if norm == "l2" else torch.inf
    measured: Tensor = torch.linalg.vector_norm(difference, ord=order, dim=1)
    return measured


def predict(oracle: CountingOracle, images: Tensor, rows: Tensor) -> Tensor:
    """Return the predicted class of each image, -1 where a logit is not finite."""
    with torch.no_grad():
        logits = oracle.logits(images, rows)
    finite = logits.isfinite().all(dim=1)
    return torch.where(finite, logits.argmax(dim=1), -1)


def verify(
    oracle: CountingOracle,
    originals: Tensor,
    points: Tensor,
    labels: Tensor,
    rows: Tensor,
    *,
    epsilon: float,
    norm: str,
) -> Verdict:
    """Judge the points an attack returned.

    Parameters
    ----------
    oracle
        Answers the fresh predictions; its counts are the verification's, not the attack's.
    originals, points
        Shape (samples, channels, height, width).
    labels
        True classes, shape (samples,).
    rows
        Index of each sample in the oracle's inputs, shape (samples,).
    epsilon, norm
        The ball, in [0, 1] pixels.
    """
    if points.shape != originals.shape:
        raise RuntimeError(
            f"the attack returned shape {tuple(points.shape)} for {tuple(originals.shape)}"
        )
    flat = points.flatten(1)
    finite = flat.isfinite().all(dim=1)
    in_range = ((flat >= -TOLERANCE) & (flat <= 1 + TOLERANCE)).all(dim=1)
    measured = distances(points, originals, norm)
    in_ball = measured <= epsilon + TOLERANCE
    valid = finite & in_range & in_ball
    predictions = predict(oracle, torch.where(_like(valid, points), points, originals), rows)
    answered = predictions >= 0
    reasons = ["" for _ in range(len(labels))]
    for mask, reason in (
        (~answered, "the logits are not finite"),
        (~in_ball, f"the attack left the {norm} ball"),
        (~in_range, "the attack left the pixel range"),
        (~finite, "the attack returned values that are not finite"),
    ):
        for row in mask.nonzero().flatten().tolist():
            reasons[row] = reason
    failed = ~(valid & answered)
    return Verdict((predictions != labels) & ~failed, failed, predictions, measured, reasons)


def _like(mask: Tensor, images: Tensor) -> Tensor:
    return mask.view(-1, *[1] * (images.ndim - 1))

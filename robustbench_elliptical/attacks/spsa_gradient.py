"""The SPSA gradient estimate: a gradient from forwards alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from robustbench_elliptical.attacks.draws import unpack_signs

__all__ = ["Bits", "ProbeLoss", "estimate_gradient"]

ProbeLoss = Callable[[Tensor, Tensor], Tensor]
"""Losses (rows,) of probes (rows, ...), given also which point each probe belongs to (rows,)."""

Bits = Callable[[int, int], Tensor]
"""The packed directions of points start to stop, uint8, shape (stop - start, samples, bytes)."""


def estimate_gradient(
    loss: ProbeLoss,
    points: Tensor,
    bits: Bits,
    *,
    samples: int,
    delta: float,
    max_rows: int,
) -> Tensor:
    """Estimate the gradient of a loss at the given points (Uesato et al. 2018, algorithm 1).

    The mean over random signs v of (loss(x + delta v) - loss(x - delta v)) / (2 delta) * v, where
    both probes are clamped to [0, 1] and 2 delta is, for each pixel, how far apart that leaves
    them. In expectation this is the exact gradient of a linear loss, and of a quadratic one at the
    middle of the probes, which is x itself wherever nothing is clamped.

    Costs 2 * samples forwards a point, in forwards of at most `max_rows` rows, and no backward.

    Parameters
    ----------
    loss
        Evaluates probes. A pair whose difference is not finite is left out.
    points
        Where the gradient is wanted, shape (points, ...), in [0, 1].
    bits
        The directions, as `robustbench_elliptical.attacks.draws.packed_signs` draws them.
    samples
        Pairs of probes for each point.
    delta
        How far a probe moves each pixel, in [0, 1] pixels.
    max_rows
        Most probes in one forward, at least 2.

    Returns
    -------
    Tensor
        The estimate, of the points' shape and dtype.
    """
    pairs = min(samples, max_rows // 2)
    group = max(1, max_rows // (2 * samples))
    total = torch.zeros_like(points).flatten(1)
    for start in range(0, len(points), group):
        stop = min(start + group, len(points))
        packed = bits(start, stop)
        for first in range(0, samples, pairs):
            signs = unpack_signs(packed[:, first : first + pairs], points.shape[1:], points.dtype)
            slopes = _differences(loss, points[start:stop], signs, start, delta)
            total[start:stop] += torch.bmm(slopes.unsqueeze(1), signs.flatten(2)).squeeze(1)
    apart = (points + delta).clamp_(max=1) - (points - delta).clamp_(min=0)
    return total.view_as(points).div_(apart.mul_(samples))


def _differences(
    loss: ProbeLoss, points: Tensor, signs: Tensor, start: int, delta: float
) -> Tensor:
    """Return loss(x + delta v) - loss(x - delta v) for each point and direction."""
    count, pairs = signs.shape[:2]
    centres = points.unsqueeze(1)
    probes = signs.new_empty(count, 2, *signs.shape[1:])
    torch.add(centres, signs, alpha=delta, out=probes[:, 0])
    torch.sub(centres, signs, alpha=delta, out=probes[:, 1])
    probes.clamp_(0, 1)
    which = torch.arange(start, start + count, device=points.device)
    losses = loss(probes.flatten(0, 2), which.repeat_interleave(2 * pairs))
    upper, lower = losses.to(points.dtype).view(count, 2, pairs).unbind(1)
    return (upper - lower).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

"""Random draws for each sample, keyed on (seed, use, sample, further words), on any device."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from robustbench_elliptical.attacks.projections import project, sample_lengths
from robustbench_elliptical.attacks.vocabulary import Norm
from robustbench_elliptical.core.randomness import keyed_generator, keyed_uniform

__all__ = ["packed_signs", "random_normal", "random_point", "random_uniform", "unpack_signs"]


def packed_signs(
    seed: int, stream: str, keys: Sequence[int], shape: Sequence[int], *words: int
) -> Tensor:
    """Draw the bits of random signs, one independent array of `shape` for each sample key.

    Packed eight to a byte they are cheap to draw and to send to a device; `unpack_signs` makes
    the numbers there.

    Parameters
    ----------
    seed, stream, words
        See `robustbench_elliptical.core.randomness.keyed_generator`.
    keys
        One for each sample.
    shape
        (draws, ...): how many draws a sample gets, and the shape of one.

    Returns
    -------
    Tensor
        uint8, shape (len(keys), draws, bytes of one draw).
    """
    width = (math.prod(shape[1:]) + 7) // 8
    bits = [keyed_generator(seed, stream, key, *words).bytes(shape[0] * width) for key in keys]
    joined = np.frombuffer(bytearray(b"".join(bits)), dtype=np.uint8)
    return torch.from_numpy(joined).view(len(keys), shape[0], width)


def unpack_signs(packed: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Turn bits into signs (-1 or +1).

    Parameters
    ----------
    packed
        What `packed_signs` drew, uint8, shape (samples, draws, bytes).
    shape
        Shape of one draw.
    dtype
        Of the result.

    Returns
    -------
    Tensor
        Shape (samples, draws, *shape).
    """
    samples, draws, width = packed.shape
    values = torch.arange(256, device=packed.device).unsqueeze(1)
    places = torch.arange(7, -1, -1, device=packed.device)
    table = (values >> places & 1).to(dtype) * 2 - 1
    signs = table.index_select(0, packed.flatten().int()).view(samples, draws, width * 8)
    return signs[..., : math.prod(shape)].reshape(samples, draws, *shape)


def random_uniform(
    seed: int, stream: str, keys: Sequence[int], like: Tensor, *words: int
) -> Tensor:
    """Draw uniform numbers in [-1, 1) for each sample, of the shape, dtype and device of `like`."""
    draws = torch.from_numpy(keyed_uniform(seed, stream, keys, like.shape[1:], *words))
    return draws.to(like).mul_(2).sub_(1)


def random_normal(seed: int, stream: str, keys: Sequence[int], like: Tensor, *words: int) -> Tensor:
    """Draw standard normal numbers for each sample, of the shape, dtype and device of `like`."""
    shape = tuple(like.shape[1:])
    draws = [
        keyed_generator(seed, stream, key, *words).standard_normal(shape, dtype=np.float32)
        for key in keys
    ]
    return torch.from_numpy(np.stack(draws)).to(like)


def random_point(
    origins: Tensor,
    keys: Sequence[int],
    *,
    epsilon: float,
    norm: Norm,
    seed: int,
    stream: str,
    restart: int,
) -> Tensor:
    """Draw a point uniformly from the ball around each origin and clamp it to [0, 1].

    For l2 the direction is uniform on the sphere and the radius epsilon * u^(1 / pixels).

    Parameters
    ----------
    origins
        Shape (batch, ...), at least one sample.
    keys
        One sample key for each origin.
    epsilon, norm
        The ball.
    seed, stream, restart
        What the draw is keyed on, beside the sample.
    """
    if norm == "linf":
        offsets = random_uniform(seed, stream, keys, origins, restart).mul_(epsilon)
        return project(offsets.add_(origins), origins, epsilon, norm)
    offsets = random_normal(seed, stream, keys, origins, restart)
    radii = keyed_uniform(seed, f"{stream}/radius", keys, (1,), restart).astype(np.float64)
    radii = epsilon * radii ** (1 / origins[0].numel())
    lengths = sample_lengths(offsets)
    factors = torch.from_numpy(radii).to(lengths).squeeze(1) / lengths
    offsets.mul_(factors.to(offsets.dtype).view(-1, *[1] * (offsets.dim() - 1)))
    return project(offsets.add_(origins), origins, epsilon, norm)

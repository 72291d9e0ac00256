"""Training windows of a token stream: shifted and shuffled, a function of (seed, epoch) alone."""

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import keyed_generator

__all__ = ["epoch_starts", "steps_per_epoch", "windows"]


def steps_per_epoch(tokens: int, length: int, batch_size: int) -> int:
    """Return how many full batches of windows one epoch has, whatever its shift.

    Raises
    ------
    UsageError
        If the text is too short for one batch.
    """
    steps = _windows_per_epoch(tokens, length) // batch_size
    if steps == 0:
        raise UsageError(
            f"training text must have at least {(batch_size + 1) * length} tokens for "
            f"{batch_size} windows of {length}, got {tokens}; lower batch_size in the recipe"
        )
    return steps


def epoch_starts(tokens: int, length: int, seed: int, epoch: int) -> Tensor:
    """Return where each window of an epoch starts, int64, in the order of training.

    Windows don't overlap; each epoch shifts them all by up to ``length - 1`` tokens.
    """
    generator = keyed_generator(seed, "training/language/epoch", epoch)
    shift = int(generator.integers(length))
    order = torch.from_numpy(generator.permutation(_windows_per_epoch(tokens, length)))
    return order * length + shift


def windows(tokens: Tensor, starts: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return windows and the token after each of their tokens, both (starts, length)."""
    places = starts[:, None] + torch.arange(length + 1)
    chosen = tokens[places]
    return chosen[:, :-1], chosen[:, 1:]


def _windows_per_epoch(tokens: int, length: int) -> int:
    # The largest shift and the last window's last target must still fit.
    return max(0, (tokens - length) // length)

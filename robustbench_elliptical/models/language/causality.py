"""Whether a language model sees the future: change later tokens, earlier losses must not move.

A causal mask isn't enough for that. Elliptical Attention as published averages its metric over the
whole window, so the loss of a token depends on tokens after it, and perplexities that score more
than the last position of a window are too low.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import keyed_generator

__all__ = ["CausalityFinding", "ScoresTokens", "causality_probe"]


class ScoresTokens(Protocol):
    """A language model, as far as the probe is concerned."""

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions); see `LanguageModel`."""
        ...


@dataclass(frozen=True)
class CausalityFinding:
    """What the probe saw."""

    leaks: bool
    """Whether a loss moved by more than the tolerance."""
    largest_change: float
    """The largest move of a loss, in nats."""
    changed_from: int
    """Tokens of the inputs were other ones from this position on when it happened."""
    position: int
    """The position before that one whose loss moved most."""
    tolerance: float
    """Moves up to here are rounding."""
    losses_compared: int
    """How many losses were compared."""


def causality_probe(
    model: ScoresTokens,
    tokens: Tensor,
    *,
    vocab_size: int,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> CausalityFinding:
    """Change all tokens from a quarter, half and three quarters of the window on, and the last one.

    Parameters
    ----------
    model
        In evaluation mode, so that two forwards agree.
    tokens
        Windows of real text, int64, shape (batch, length + 1): inputs and the token after them.
    vocab_size
        Number of tokens; the replacements are drawn from all of them.
    tolerance
        Largest change of a loss, in nats, that is still rounding.
    seed
        Seed of the replacements.

    Raises
    ------
    UsageError
        If the windows are too short, or a loss is not finite.
    """
    if tokens.ndim != 2 or not len(tokens) or tokens.shape[1] < 3 or vocab_size < 2:
        raise UsageError(
            "the causality check needs windows of at least 3 tokens from a vocabulary of at least "
            f"2, got windows of shape {tuple(tokens.shape)} and {vocab_size} words"
        )
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    length = inputs.shape[1]
    places = sorted({max(1, length * quarter // 4) for quarter in (1, 2, 3)} | {length - 1})
    with torch.no_grad():
        before = model.token_losses(inputs, targets)
        worst, compared = (-1.0, 0, 0), 0
        for place in places:
            changed = _replaced(inputs, place, vocab_size, seed)
            after = model.token_losses(changed, targets)
            moves = (after - before).abs()[:, :place].amax(dim=0)
            if not bool(torch.isfinite(moves).all()):
                raise UsageError("the causality check needs finite losses, got NaN or infinity")
            position = int(moves.argmax())
            worst = max(worst, (float(moves[position]), place, position))
            compared += len(inputs) * place
    change, place, position = worst
    return CausalityFinding(change > tolerance, change, place, position, tolerance, compared)


def _replaced(inputs: Tensor, place: int, vocab_size: int, seed: int) -> Tensor:
    """Return the inputs with another token at every position from `place` on."""
    generator = keyed_generator(seed, "causality", place)
    shifts = torch.from_numpy(generator.integers(1, vocab_size, size=tuple(inputs.shape)))
    changed = (inputs + shifts.to(inputs.device)) % vocab_size
    changed[:, :place] = inputs[:, :place]
    return changed

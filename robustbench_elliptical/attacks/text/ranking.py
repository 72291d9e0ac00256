"""The changes to one text, ranked by the model's gradient and its prices for the new words."""

from dataclasses import dataclass

import numpy as np

from robustbench_elliptical.attacks.text.ball import SwapBall
from robustbench_elliptical.attacks.text.first_order import best_words, context_change
from robustbench_elliptical.attacks.text.moves import Moves, ordered_moves
from robustbench_elliptical.attacks.text.objective import (
    Objective,
    price_replacement,
    price_restored,
)
from robustbench_elliptical.attacks.text.oracle import Floats, Queries, Tokens

__all__ = ["Ranking", "Visited"]


@dataclass(frozen=True, eq=False)
class Visited:
    """A text that the model has been asked about."""

    tokens: Tokens
    losses: Floats
    """Nats, shape (words,)."""
    value: float
    """The objective, nats."""
    gradient: Floats | None
    """Of the sum over the targets that count, shape (words, d_model); None if not asked for."""


class Ranking:
    """What the model says about the changes to one text.

    Parameters
    ----------
    ball
        Where the text must stay.
    queries
        The model. With all targets it is asked once, here, for the prices of the new words.
    objective
        What is to be raised.
    state
        The text, with its gradient.
    own_losses
        Losses of the document's own words in the document, nats, shape (words,): estimates of what
        they would cost in the text.
    most_scores
        Most numbers of shape (positions, vocabulary) to hold at a time. If the prices of all
        positions are more, only the most promising positions are ranked.
    """

    def __init__(
        self,
        ball: SwapBall,
        queries: Queries,
        objective: Objective,
        state: Visited,
        own_losses: Floats,
        most_scores: int,
    ) -> None:
        self._ball = ball
        self._vectors = queries.word_vectors
        self._text = state.tokens
        assert state.gradient is not None
        self._gradient = state.gradient
        self._most_scores = most_scores
        self._swapped = ball.swapped(state.tokens)
        mean = max(state.value, 0.0)
        self._leaving = price_replacement(objective, state.losses, self._swapped, mean)
        self._restored = price_restored(objective, state.losses, own_losses, mean)
        self._positions = np.flatnonzero(ball.eligible)
        self._prices = None
        if objective == "all-targets":
            self._positions = self._worth_a_price()
            self._prices = -queries.target_log_probabilities(state.tokens, self._positions)

    def moves(self, trust: float, count: int) -> Moves:
        """Return the changes in falling order of their promise.

        Parameters
        ----------
        trust
            What the first-order change of the contexts is multiplied by, in (0, 1]. A swap is no
            small step, and a gradient mostly promises more than it keeps.
        count
            How many replacements to keep for each position.
        """
        found = best_words(
            trust * self._gradient[self._positions],
            self._vectors,
            self._text[self._positions],
            self._ball.replacements,
            count,
            self._prices,
            self._most_scores,
        )
        positions = self._positions[found.rows]
        kept = found.words != self._ball.tokens[positions]
        gains = found.gains + self._leaving[positions]
        dropped = np.flatnonzero(self._swapped)
        change = trust * context_change(
            self._gradient[dropped],
            self._vectors,
            self._text[dropped],
            self._ball.tokens[dropped],
        )
        return ordered_moves(
            self._ball,
            self._text,
            (positions[kept], found.words[kept], gains[kept]),
            (dropped, change + self._restored[dropped]),
        )

    def _worth_a_price(self) -> Tokens:
        """Return the most promising positions, as many as memory allows."""
        positions = self._positions
        most = max(1, self._most_scores // len(self._vectors))
        if len(positions) <= most:
            return positions
        reach = best_words(
            self._gradient[positions],
            self._vectors,
            self._text[positions],
            self._ball.replacements,
            1,
            None,
            self._most_scores,
        )
        promise = np.full(len(positions), -np.inf)
        promise[reach.rows] = reach.gains + self._leaving[positions[reach.rows]]
        return np.sort(positions[np.argsort(-promise, kind="stable")[:most]])

"""The search of `robustbench_elliptical.attacks.text.adversarial_swap`: rank, verify, keep."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robustbench_elliptical.attacks.text.ball import SwapBall
from robustbench_elliptical.attacks.text.first_order import MOST_SCORES
from robustbench_elliptical.attacks.text.moves import Moves
from robustbench_elliptical.attacks.text.objective import Objective, target_weights, weighted_mean
from robustbench_elliptical.attacks.text.oracle import Queries, Tokens
from robustbench_elliptical.attacks.text.ranking import Ranking, Visited

__all__ = ["Search"]

_TRUSTS = (1.0, 0.5, 0.25, 0.125)
"""How far the gradient is believed; the launch tries each, and the climb goes on with the best."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """What stays the same while one document is attacked."""

    ball: SwapBall
    queries: Queries
    objective: Objective
    candidates: int
    """How many replacements to keep for each position."""
    most_scores: int = MOST_SCORES
    """See `Ranking`."""

    def visit(self, tokens: Tokens, with_gradient: bool) -> Visited:
        """Ask about a text; one call."""
        weights = target_weights(self.objective, self.ball.swapped(tokens))
        gradient = None
        if with_gradient:
            losses, gradient = self.queries.gradient(tokens, weights)
        else:
            losses = self.queries.losses(tokens)
        return Visited(tokens, losses, weighted_mean(losses, weights), gradient)

    def run(self, clean: Visited, base: Visited, controls: Sequence[Visited]) -> Visited:
        """Spend what is left of the budget on changes, and return the best text seen.

        Parameters
        ----------
        clean
            The document.
        base
            Where to launch from, with its gradient; the document itself, or a text of the ball.
        controls
            Further texts of the ball.
        """
        launched, trust = self._launch(clean, base)
        best = max([clean, base, *controls, *launched], key=lambda each: each.value)
        return self._climb(clean, best, trust)

    def _launch(self, clean: Visited, base: Visited) -> tuple[list[Visited], float]:
        """Make all promising changes at once, by each trust; return the texts and the best one."""
        texts: list[Visited] = []
        trusts: list[float] = []
        if self.queries.left > self._ranking_calls:
            ranking = self._ranking(clean, base)
            for trust in _TRUSTS[: self.queries.left]:
                tokens = ranking.moves(trust, self.candidates).block(0, self.ball.limit)
                if tokens is None or any(np.array_equal(tokens, each.tokens) for each in texts):
                    continue
                texts.append(self.visit(tokens, with_gradient=False))
                trusts.append(trust)
        values = [each.value for each in texts]
        return texts, trusts[int(np.argmax(values))] if values else _TRUSTS[0]

    def _climb(self, clean: Visited, best: Visited, trust: float) -> Visited:
        """Change the best text as long as its verified value rises and the budget lasts."""
        size = self.ball.limit
        found: Visited | None = best
        while found is not None:
            best = found
            if self.queries.left <= self._ranking_calls + (best.gradient is None):
                break
            if best.gradient is None:
                best = replace(best, gradient=self.visit(best.tokens, True).gradient)
            moves = self._ranking(clean, best).moves(trust, self.candidates)
            found, size = self._improve(best, moves, size)
        return best

    def _improve(self, best: Visited, moves: Moves, size: int) -> tuple[Visited | None, int]:
        """Return the first text that beats the best one, if any, and how many changes it took.

        Blocks are halved until one does; then single changes follow in the order of their promise.
        """
        start = 0
        while self.queries.left:
            tokens = moves.block(start, size)
            if tokens is None:
                break
            again = self.queries.left > self._ranking_calls + 1
            trial = self.visit(tokens, with_gradient=again and not start)
            if trial.value > best.value:
                return trial, size
            if size > 1:
                size //= 2
            else:
                start += 1
        return None, size

    @property
    def _ranking_calls(self) -> int:
        return int(self.objective == "all-targets")

    def _ranking(self, clean: Visited, state: Visited) -> Ranking:
        return Ranking(
            self.ball, self.queries, self.objective, state, clean.losses, self.most_scores
        )

"""Adversarial swap: the words whose replacement raises a language model's loss most."""

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.ball import SwapBall, swap_ball
from robustbench_elliptical.attacks.text.checks import checked_as
from robustbench_elliptical.attacks.text.contaminated import ContaminatedTokens
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.objective import Objective
from robustbench_elliptical.attacks.text.oracle import Queries, TextOracle, Tokens
from robustbench_elliptical.attacks.text.search import Search
from robustbench_elliptical.attacks.text.word_swap import Replacement, word_swap_tokens
from robustbench_elliptical.attacks.vocabulary import Count
from robustbench_elliptical.core.errors import UsageError

__all__ = ["adversarial_swap"]

_CONTROLS: tuple[Replacement, ...] = ("random-word", "AAA")


@checked_as("adversarial-swap")
def adversarial_swap(
    tokens: npt.NDArray[np.integer],
    rate: float,
    document_id: str,
    lexicon: Lexicon,
    oracle: TextOracle,
    start: npt.NDArray[np.integer] | None = None,
    *,
    objective: Objective = "all-targets",
    budget: Count = 24,
    candidates: Count = 8,
    seed: int = 0,
) -> ContaminatedTokens:
    """Swap the words whose replacement raises a language model's loss most, as far as is found.

    In the style of HotFlip (Ebrahimi et al. 2018, arXiv 1712.06751): the gradient with respect to
    the embeddings ranks positions and replacements, and with all targets the model's own
    log-probabilities price the new word as a target. Unlike HotFlip, which trusts the ranking, many
    swaps are made at once, and whatever is kept was verified by the model's losses; blocks that
    don't raise them are halved. Once all swaps are used up they are reworded or moved.

    As strong as its random control by construction: the random-word swap and the AAA swap of the
    same rate and seed are evaluated first, as are the document and `start`, and the result is never
    weaker than any of them by the losses that the oracle returned. (AAA is left out where the
    vocabulary lacks it: `<unk>` is not in the ball.) Nothing is claimed about the strongest text
    of the ball, and a larger budget need not give a stronger one.

    Parameters
    ----------
    tokens
        Numbers of one document's words, shape (words,).
    rate
        Share of the eligible words, in [0, 1]. At most as many are swapped as `word_swap` swaps at
        its exact rate, of the same eligible words, for words that hold a letter or digit.
    document_id
        What the random control is keyed on, beside the seed.
    lexicon
        The vocabulary that numbers the tokens.
    oracle
        The model's losses on this document.
    start
        A text of the ball to begin at, such as the result at a smaller rate; the document if None.
    objective
        ``"all-targets"`` or ``"clean-targets"``; see
        `robustbench_elliptical.attacks.text.objective.Objective`.
    budget
        Most calls of the oracle, each one document forward.
    candidates
        How many replacements to keep for each position, the most promising ones.
    seed
        Seed of the random control, 0 or more.

    Returns
    -------
    ContaminatedTokens
        As many tokens as before, int64; the document itself, without any call, where no word may be
        swapped.

    Raises
    ------
    UsageError
        If an argument is not as described, or the budget too small for the controls.
    NonFiniteLossError
        If the model answers with NaN or infinity.
    """
    ball = swap_ball(tokens, rate, lexicon)
    begin = None if start is None else ball.check_start(start)
    if not ball.limit:
        return ball.contaminated(ball.tokens.copy())
    controls = _controls(ball, rate, document_id, lexicon, seed)
    _check_budget(budget, 1 + len(controls) + (begin is not None))
    search = Search(
        ball=ball, queries=Queries(oracle, budget), objective=objective, candidates=candidates
    )
    clean = search.visit(ball.tokens, with_gradient=begin is None)
    visited = [search.visit(each, with_gradient=False) for each in controls]
    base = clean if begin is None else search.visit(begin, with_gradient=True)
    return ball.contaminated(search.run(clean, base, visited).tokens)


def _check_budget(budget: int, least: int) -> None:
    if budget < least:
        raise UsageError(
            f"budget must be at least {least}, the forwards of the document and the controls, got "
            f"{budget}"
        )


def _controls(
    ball: SwapBall, rate: float, document_id: str, lexicon: Lexicon, seed: int
) -> list[Tokens]:
    """Return the random-word swap and the AAA swap, where that one is in the ball."""
    if np.count_nonzero(np.asarray(lexicon.counts)[ball.replacements]) < 2:
        raise UsageError(
            "lexicon must have the counts of at least two words with a letter or digit, for the "
            "random control; use the vocabulary that the model was trained with"
        )
    swaps = [
        word_swap_tokens(
            ball.tokens, rate, document_id, lexicon, replacement=each, seed=seed
        ).tokens
        for each in _CONTROLS
    ]
    return [each for each in swaps if ball.replacements[each[ball.swapped(each)]].all()]

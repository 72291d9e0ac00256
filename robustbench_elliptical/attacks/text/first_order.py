"""What each replacement of a word would change, to first order, in bounded memory."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.oracle import Floats, Tokens

__all__ = ["MOST_SCORES", "Replacements", "best_words", "context_change"]

MOST_SCORES = 1 << 23
"""Most numbers of shape (positions, vocabulary) held at a time: 64 MiB in float64."""


class Replacements(NamedTuple):
    """Replacements of some words, each field of shape (replacements,)."""

    rows: npt.NDArray[np.int64]
    """Which of the words that were asked about."""
    words: npt.NDArray[np.int64]
    """What would stand in its place."""
    gains: Floats
    """By how much the loss would rise, nats, to first order."""


def best_words(
    gradient: Floats,
    word_vectors: Floats,
    current: Tokens,
    allowed: npt.NDArray[np.bool_],
    count: int,
    prices: Floats | None = None,
    most_scores: int = MOST_SCORES,
) -> Replacements:
    """Return the words of highest gain for each position.

    As HotFlip does (Ebrahimi et al. 2018, arXiv 1712.06751), a word w in the place of x is given
    the gain gradient . (vector of w - vector of x), here plus its price.

    Parameters
    ----------
    gradient
        Of the loss with respect to the embedding at each position, shape (positions, d_model).
    word_vectors
        Shape (vocabulary, d_model).
    current
        The word at each position, never returned for it.
    allowed
        Which words may stand in, shape (vocabulary,).
    count
        How many words to keep for each position.
    prices
        What each word costs as a target, nats, shape (positions, vocabulary); None: nothing.
    most_scores
        How many scores to hold at a time; does not change the result.
    """
    step = max(1, most_scores // len(word_vectors))
    kept = min(count, len(word_vectors))
    words = np.empty((len(current), kept), dtype=np.int64)
    gains = np.empty((len(current), kept), dtype=gradient.dtype)
    for start in range(0, len(current), step):
        rows = slice(start, start + step)
        scores = gradient[rows] @ word_vectors.T
        scores -= np.take_along_axis(scores, current[rows, None], axis=1)
        if prices is not None:
            scores += prices[rows]
        scores[:, ~allowed] = -np.inf
        np.put_along_axis(scores, current[rows, None], -np.inf, axis=1)
        words[rows] = np.argpartition(scores, -kept, axis=1)[:, -kept:]
        gains[rows] = np.take_along_axis(scores, words[rows], axis=1)
    rows_of, columns = np.nonzero(np.isfinite(gains))
    return Replacements(rows_of, words[rows_of, columns], gains[rows_of, columns])


def context_change(
    gradient: Floats, word_vectors: Floats, current: Tokens, other: Tokens
) -> Floats:
    """Return what another word at each position changes as a context, nats, to first order.

    Parameters
    ----------
    gradient
        Shape (positions, d_model).
    word_vectors
        Shape (vocabulary, d_model).
    current, other
        The word at each position, and the one that would stand there.
    """
    change: Floats = np.einsum("pd,pd->p", gradient, word_vectors[other] - word_vectors[current])
    return change

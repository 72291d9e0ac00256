"""What an attack on tokens may ask of a language model, and the count of what it asked."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "NonFiniteLossError", "Queries", "TextOracle", "Tokens"]

Tokens = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]


class NonFiniteLossError(ValueError):
    """The model answered an attack with NaN or infinity: the document can't be attacked."""


class TextOracle(Protocol):
    """One document's loss as a function of its tokens.

    Every call is one document forward, which the implementation counts for itself. Answers are
    the caller's: the attack neither keeps nor changes them in place.
    """

    @property
    def word_vectors(self) -> Floats:
        """The embedding of each word as an input, shape (vocabulary, d_model)."""
        ...

    def losses(self, tokens: Tokens) -> Floats:
        """Return each token's negative log-likelihood given what stands before it.

        Parameters
        ----------
        tokens
            The document, shape (words,).

        Returns
        -------
        Floats
            Nats, shape (words,); one forward.
        """
        ...

    def gradient(self, tokens: Tokens, weights: Floats) -> tuple[Floats, Floats]:
        """Return the losses and the gradient of their weighted sum.

        Parameters
        ----------
        tokens
            The document, shape (words,).
        weights
            One for each loss, shape (words,).

        Returns
        -------
        tuple[Floats, Floats]
            The losses in nats, shape (words,), and the gradient with respect to the embedding of
            each token as an input, not as a target, shape (words, d_model); one forward and one
            backward.
        """
        ...

    def target_log_probabilities(self, tokens: Tokens, positions: npt.NDArray[np.int64]) -> Floats:
        """Return the log-probability of every word as the target at some positions.

        Parameters
        ----------
        tokens
            The document, shape (words,).
        positions
            Which positions of it.

        Returns
        -------
        Floats
            Nats, shape (positions, vocabulary); one forward.
        """
        ...


class Queries:
    """An oracle that refuses answers that aren't finite and knows what is left of a budget.

    Parameters
    ----------
    oracle
        Whom to ask.
    budget
        How many calls are paid for.

    Attributes
    ----------
    left
        Calls still paid for; whoever asks sees to it that this stays at 0 or more.
    """

    def __init__(self, oracle: TextOracle, budget: int) -> None:
        self._oracle = oracle
        self.left = budget

    @property
    def word_vectors(self) -> Floats:
        """See `TextOracle.word_vectors`; free."""
        return self._oracle.word_vectors

    def losses(self, tokens: Tokens) -> Floats:
        """See `TextOracle.losses`; raises `NonFiniteLossError`."""
        self.left -= 1
        return _finite(self._oracle.losses(tokens), "losses")

    def gradient(self, tokens: Tokens, weights: Floats) -> tuple[Floats, Floats]:
        """See `TextOracle.gradient`; raises `NonFiniteLossError`."""
        self.left -= 1
        losses, gradient = self._oracle.gradient(tokens, weights)
        return _finite(losses, "losses"), _finite(gradient, "gradients")

    def target_log_probabilities(self, tokens: Tokens, positions: npt.NDArray[np.int64]) -> Floats:
        """See `TextOracle.target_log_probabilities`; raises `NonFiniteLossError`."""
        self.left -= 1
        answer = self._oracle.target_log_probabilities(tokens, positions)
        return _finite(answer, "log-probabilities")


def _finite(answer: Floats, what: str) -> Floats:
    bad = np.count_nonzero(~np.isfinite(answer))
    if bad:
        raise NonFiniteLossError(
            f"the model's {what} must be finite to attack a document, got NaN or infinity in "
            f"{bad} of {answer.size}"
        )
    return answer

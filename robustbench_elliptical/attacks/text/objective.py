"""What an attack on a document's tokens raises: a mean over all targets, or over the clean ones."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.oracle import Floats

__all__ = ["Objective", "price_replacement", "price_restored", "target_weights", "weighted_mean"]

Objective = Literal["all-targets", "clean-targets"]
"""Which losses count.

all-targets
    The mean over every token of the text as it stands, the published number: a swapped word counts
    as a context and as a target.
clean-targets
    The mean over the tokens that aren't swapped: a swapped word counts as a context only.
"""


def target_weights(objective: Objective, swapped: npt.NDArray[np.bool_]) -> Floats:
    """Return 1 for each target that counts and 0 for the others, float64, shape (words,)."""
    counted = np.ones_like(swapped) if objective == "all-targets" else ~swapped
    return counted.astype(np.float64)


def weighted_mean(losses: Floats, weights: Floats) -> float:
    """Return the mean loss of the targets that count, nats; minus infinity if none does."""
    total = float(weights.sum())
    return float((losses * weights).sum()) / total if total else -np.inf


def price_replacement(
    objective: Objective, losses: Floats, swapped: npt.NDArray[np.bool_], mean: float
) -> Floats:
    """Return what a replacement changes as a target, before the price of the new word, in nats.

    Changes are those of the sum over the targets that count, less `mean` for each that joins: to
    first order the change of their mean, times their number.

    Parameters
    ----------
    losses
        Of the present words, shape (words,).
    swapped
        Which of them are swapped, shape (words,).
    mean
        Mean loss of the targets that count, in nats.

    Returns
    -------
    Floats
        Shape (words,): the present word's loss is lost, and with clean targets a word that wasn't
        swapped leaves the mean.
    """
    if objective == "all-targets":
        return -losses
    return np.where(swapped, 0, mean - losses)


def price_restored(objective: Objective, losses: Floats, own: Floats, mean: float) -> Floats:
    """Return what restoring a swapped word changes as a target, nats, shape (words,).

    Parameters
    ----------
    losses
        Of the present words, shape (words,).
    own
        Estimates of the loss of the document's own words, shape (words,).
    mean
        Mean loss of the targets that count, in nats.
    """
    return own - (losses if objective == "all-targets" else mean)

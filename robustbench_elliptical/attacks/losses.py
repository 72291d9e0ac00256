"""Losses for each sample, all of them "higher is more adversarial", and the rule of success.

Of the shape (rows, classes) to (rows,). Where `targeted`, the labels are the classes that the
attack wants, otherwise those that it wants to leave.
"""

import torch
from torch import Tensor
from torch.nn import functional

from robustbench_elliptical.attacks.vocabulary import LossName

__all__ = ["cross_entropy", "dlr", "is_fooled", "loss_values", "margin"]

_SMALLEST_SPREAD = 1e-12
"""Keeps `dlr` finite where the leading logits tie, as in the authors' code."""


def cross_entropy(logits: Tensor, labels: Tensor, *, targeted: bool = False) -> Tensor:
    """Return the cross-entropy of the labels, negated if `targeted`.

    It saturates: where the model is sure, its gradient underflows to 0.
    """
    values = functional.cross_entropy(logits, labels, reduction="none")
    return -values if targeted else values


def margin(logits: Tensor, labels: Tensor, *, targeted: bool = False) -> Tensor:
    """Return the largest other logit less the label's logit, negated if `targeted`.

    Carlini & Wagner 2017 (arXiv 1608.04644), f_6 without its floor: above 0 means success.
    """
    gap = _largest_other(logits, labels) - _of_labels(logits, labels)
    return -gap if targeted else gap


def dlr(logits: Tensor, labels: Tensor, *, targeted: bool = False) -> Tensor:
    """Return the difference of logits ratio (Croce & Hein 2020, arXiv 2003.01690).

    Untargeted, equation 6: -(z_y - max_{i != y} z_i) / (z_(1) - z_(3)), with z_(k) the k-th largest
    logit. Targeted, equation 7: -(z_y - z_t) / (z_(1) - (z_(3) + z_(4)) / 2); the attack knows the
    target alone, so the strongest other class stands for y. Needs 3 classes, 4 if `targeted`.
    """
    leading = logits.topk(4 if targeted else 3, dim=1).values
    if targeted:
        spread = leading[:, 0] - (leading[:, 2] + leading[:, 3]) / 2
    else:
        spread = leading[:, 0] - leading[:, 2]
    return margin(logits, labels, targeted=targeted) / (spread + _SMALLEST_SPREAD)


def loss_values(name: LossName, logits: Tensor, labels: Tensor, *, targeted: bool) -> Tensor:
    """Return the named loss of each row, shape (rows,)."""
    function = {"cross-entropy": cross_entropy, "margin": margin, "dlr": dlr}[name]
    return function(logits, labels, targeted=targeted)


def is_fooled(logits: Tensor, labels: Tensor, *, targeted: bool) -> Tensor:
    """Return whether the prediction is what the attack wants, bool, shape (rows,).

    A row with a NaN or infinite logit counts as not fooled.
    """
    predicted = logits.argmax(dim=1)
    reached = predicted == labels if targeted else predicted != labels
    return reached & torch.isfinite(logits).all(dim=1)


def _of_labels(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.gather(1, labels.unsqueeze(1)).squeeze(1)


def _largest_other(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.scatter(1, labels.unsqueeze(1), float("-inf")).amax(dim=1)

"""One call of an attack, checked: the model, the images, the labels and what counts as success."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from robustbench_elliptical.attacks.checks import (
    check_epsilon,
    check_images,
    check_labels,
    check_logits,
    check_sample_ids,
    check_seed,
)
from robustbench_elliptical.attacks.losses import is_fooled, loss_values
from robustbench_elliptical.attacks.projections import round_toward
from robustbench_elliptical.attacks.vocabulary import LossName, Norm
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.oracle import DrawingOracle, LogitsFunction, Oracle, as_oracle
from robustbench_elliptical.core.randomness import sample_key

__all__ = ["Answer", "Problem", "input_gradient", "prepare"]


@dataclass(frozen=True)
class Answer:
    """What the model said about some iterates; each field has shape (rows,)."""

    losses: Tensor
    """Higher is more adversarial; part of the graph where gradients are recorded."""
    scores: Tensor
    """The losses to rank iterates by: minus infinity where a logit is not finite; detached."""
    fooled: Tensor
    """Whether the iterate is a success, bool."""


@dataclass(frozen=True)
class Problem:
    """Inputs that passed every check, and how to ask the model about them."""

    oracle: Oracle
    images: Tensor
    """Shape (batch, ...), in the caller's dtype, detached, in [0, 1]."""
    labels: Tensor
    """int64, shape (batch,)."""
    keys: Sequence[int]
    """One sample key for each image."""
    epsilon: float
    norm: Norm
    seed: int
    loss: LossName
    targeted: bool
    draws: int
    """How many of the model's random draws are averaged over."""
    highest_label: int

    @property
    def solved(self) -> bool:
        """Whether there is nothing to do: no image, or no room to move."""
        return len(self.keys) == 0 or self.epsilon == 0

    @property
    def precision(self) -> torch.dtype:
        """The dtype of iterates and steps: the images', but at least float32."""
        return torch.promote_types(self.images.dtype, torch.float32)

    def losses(self, points: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
        """Ask the model about points; return the loss of each row, at least float32.

        The mean over the draws. One forward a draw.

        Parameters
        ----------
        points
            Shape (rows, ...), in the images' dtype.
        rows
            Which image each point stems from, int64.
        labels
            The label of each point.

        Raises
        ------
        UsageError
            If the model's answer has another shape, or no class for a label.
        """
        return _mean([losses for _, losses in self._answers(points, rows, labels)])

    def ask(self, points: Tensor, rows: Tensor, labels: Tensor) -> Answer:
        """Ask the model about iterates; takes and raises what `losses` does.

        An iterate is a success if it is one under every draw.
        """
        finite, fooled, losses = [], [], []
        for logits, loss in self._answers(points, rows, labels):
            readable = logits.detach()
            losses.append(loss)
            finite.append(torch.isfinite(readable).all(dim=1))
            fooled.append(is_fooled(readable, labels, targeted=self.targeted))
        mean = _mean(losses)
        scores = mean.detach().masked_fill(~_all(finite), float("-inf"))
        return Answer(mean, scores, _all(fooled))

    def _answers(
        self, points: Tensor, rows: Tensor, labels: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the logits, shape (rows, classes), and the losses under each draw."""
        for draw in range(1, self.draws + 1):
            if self.draws > 1 and isinstance(self.oracle, DrawingOracle):
                logits = self.oracle.logits_of_draw(points, rows, draw)
            else:
                logits = self.oracle.logits(points, rows)
            check_logits(logits, len(rows), self.highest_label, self.loss, targeted=self.targeted)
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            yield logits, loss_values(self.loss, logits, labels, targeted=self.targeted)

    def rounded(self, points: Tensor, origins: Tensor) -> Tensor:
        """Return iterates in the images' dtype, without leaving the ball."""
        return round_toward(points, origins, self.images.dtype)


def prepare(
    model: LogitsFunction | Oracle,
    inputs: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    norm: Norm,
    seed: int,
    sample_ids: Sequence[str] | None,
    loss: LossName = "margin",
    targeted: bool = False,
    draws: int = 1,
) -> Problem:
    """Check the arguments that all attacks share.

    Raises
    ------
    UsageError
        With the first argument that is not as an attack needs it.
    """
    images = check_images(inputs)
    batch = len(images)
    wanted = check_labels(labels, batch).to(images.device)
    pixels = images[0].numel() if batch else None
    return Problem(
        oracle=as_oracle(model),
        images=images,
        labels=wanted,
        keys=[sample_key(each) for each in check_sample_ids(sample_ids, batch)],
        epsilon=check_epsilon(epsilon, norm, pixels),
        norm=norm,
        seed=check_seed(seed),
        loss=loss,
        targeted=targeted,
        draws=draws,
        highest_label=int(wanted.max()) if batch else 0,
    )


def input_gradient(losses: Tensor, points: Tensor) -> Tensor:
    """Return the gradient of the summed losses with respect to `points`, at least float32.

    The sum keeps each sample's gradient its own; parameters collect nothing. One backward.

    Raises
    ------
    UsageError
        If the losses do not depend on the points as far as autograd can tell.
    """
    gradient = None
    if losses.requires_grad:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(losses.sum(), points, allow_unused=True)
    if gradient is None:
        raise UsageError(
            "the model gives no gradient with respect to its input (its logits are detached from "
            "it): use an attack that needs none, such as spsa"
        )
    return gradient.to(torch.promote_types(gradient.dtype, torch.float32))


def _mean(losses: Sequence[Tensor]) -> Tensor:
    return losses[0] if len(losses) == 1 else torch.stack(tuple(losses)).mean(dim=0)


def _all(masks: Sequence[Tensor]) -> Tensor:
    return masks[0] if len(masks) == 1 else torch.stack(tuple(masks)).all(dim=0)

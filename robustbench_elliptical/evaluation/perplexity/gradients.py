"""How the losses of a text change with the word vectors it is read through."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.perplexity.scoring import (
    Batch,
    Tokens,
    batches,
    check_sequence,
    inputs_and_targets,
)

__all__ = ["DifferentiableScorer", "SequenceGradient", "loss_gradient"]


class DifferentiableScorer(Protocol):
    """A language model whose word vectors can be reached; see `LanguageModel`."""

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the word vectors, shape (batch, length, d_model)."""
        ...

    def forward_embeddings(self, embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return hidden states, shape (batch, positions, d_model)."""
        ...

    def hidden_losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target, shape (batch, positions)."""
        ...


class SequenceGradient(NamedTuple):
    """The losses of one sequence and what they owe to each input."""

    losses: npt.NDArray[np.float64]
    """Negative log-likelihood of every token but the first, shape (n,), in nats."""
    gradient: npt.NDArray[np.float64]
    """Of the weighted sum of the losses, with respect to the word vector of every token but the
    last, shape (n, d_model), summed over the windows that read it."""
    forwards: int
    """Windows read."""


def loss_gradient(
    model: DifferentiableScorer,
    sequence: Tokens,
    weights: npt.NDArray[np.float64],
    *,
    window: int,
    stride: int,
    batch_size: int,
    device: str | torch.device = "cpu",
) -> SequenceGradient:
    """Return the gradient of sum_i weights[i] * losses[i] with respect to the word vectors.

    No gradient is left on the model's parameters.

    Parameters
    ----------
    model
        In evaluation mode, on `device`.
    sequence
        Tokens, int64, shape (n + 1,); see `sequence_losses`.
    weights
        One for each target, shape (n,).
    window, stride, batch_size, device
        See `sequence_losses`.

    Raises
    ------
    UsageError
        If the sequence has no target, the weights are not one for each, or window, stride or batch
        size are out of range.
    """
    tokens = check_sequence(sequence)
    if weights.shape != (len(tokens) - 1,):
        raise UsageError(
            f"weights must be one for each of the {len(tokens) - 1} targets, got shape "
            f"{weights.shape}; give 0 to a target that does not count"
        )
    losses = np.empty(len(tokens) - 1)
    gradient = np.zeros((len(losses), _width(model, tokens, device)))
    forwards = 0
    for batch in batches([len(tokens) - 1], window, stride, batch_size):
        found, slopes = _batch_gradient(model, tokens, batch, weights, device)
        for row, (_, start, stop) in zip(found, batch.places(), strict=True):
            losses[start:stop] = row
        for slope, (_, each) in zip(slopes, batch.members, strict=True):
            gradient[each.start : each.stop] += slope
        forwards += len(batch.members)
    return SequenceGradient(losses, gradient, forwards)


def _width(model: DifferentiableScorer, tokens: Tokens, device: str | torch.device) -> int:
    with torch.no_grad():
        return model.embed(torch.tensor([[int(tokens[0])]], device=device)).shape[-1]


def _batch_gradient(
    model: DifferentiableScorer,
    tokens: Tokens,
    batch: Batch,
    weights: npt.NDArray[np.float64],
    device: str | torch.device,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the losses of a batch's scored positions and the slopes of all its inputs."""
    inputs, targets = inputs_and_targets([tokens], batch, device)
    first = batch.members[0][1].first
    positions = torch.arange(first, inputs.shape[1], device=inputs.device)
    rows = np.stack([weights[start:stop] for _, start, stop in batch.places()])
    with torch.enable_grad():
        vectors = model.embed(inputs).detach().requires_grad_()
        losses = model.hidden_losses(
            model.forward_embeddings(vectors, positions), targets[:, positions]
        )
        total = (losses * torch.from_numpy(rows).to(losses)).sum()
        (slopes,) = torch.autograd.grad(total, vectors)
    return losses.detach().double().cpu().numpy(), slopes.double().cpu().numpy()

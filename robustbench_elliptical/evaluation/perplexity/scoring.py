"""The loss of every target of a text, in batches of windows; equal to one window at a time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.perplexity.windows import Window, windows

__all__ = ["SequenceLosses", "TokenScorer", "batches", "inputs_and_targets", "sequence_losses"]

Tokens = npt.NDArray[np.int64]


class TokenScorer(Protocol):
    """A language model, as far as a perplexity is concerned."""

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions); see `LanguageModel`."""
        ...


class SequenceLosses(NamedTuple):
    """What a model makes of one sequence."""

    losses: npt.NDArray[np.float64]
    """Negative log-likelihood of every token but the first, in nats; not finite where the model's
    answer is not."""
    forwards: int
    """Windows read."""


class Batch(NamedTuple):
    """Windows of one shape, of any sequences."""

    members: tuple[tuple[int, Window], ...]
    """The sequence that each window is of, and the window."""

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each window: its sequence, the first target scored and one past the last."""
        for sequence, window in self.members:
            yield sequence, window.start + window.first, window.stop


def sequence_losses(
    scorer: TokenScorer,
    sequences: Sequence[Tokens],
    *,
    window: int,
    stride: int,
    batch_size: int,
    device: str | torch.device = "cpu",
) -> list[SequenceLosses]:
    """Return the loss of every token but the first of each sequence.

    Windows of one shape are read together, of whatever sequence. The output distribution is asked
    for at scored positions only, most of the cost at stride 1 where the vocabulary is large.

    Parameters
    ----------
    scorer
        In evaluation mode, on `device`.
    sequences
        Tokens, int64, each of shape (n + 1,): the context-free first token, then n targets.
    window, stride
        See `windows`.
    batch_size
        Windows read together at most. Memory is bounded by it, whatever the text's length.
    device
        Where the model is.

    Returns
    -------
    list of SequenceLosses
        One a sequence, losses of shape (n,), float64.

    Raises
    ------
    UsageError
        If a sequence has no target, or window, stride or batch size are out of range.
    """
    checked = [check_sequence(sequence) for sequence in sequences]
    losses = [np.empty(len(sequence) - 1) for sequence in checked]
    forwards = [0] * len(checked)
    with torch.inference_mode():
        for batch in batches([len(each) - 1 for each in checked], window, stride, batch_size):
            inputs, targets = inputs_and_targets(checked, batch, device)
            first = batch.members[0][1].first
            positions = torch.arange(first, inputs.shape[1], device=inputs.device)
            found = scorer.token_losses(inputs, targets, positions).double().cpu().numpy()
            for row, (sequence, start, stop) in zip(found, batch.places(), strict=True):
                losses[sequence][start:stop] = row
                forwards[sequence] += 1
    return [SequenceLosses(*each) for each in zip(losses, forwards, strict=True)]


def check_sequence(sequence: Tokens) -> Tokens:
    """Refuse a sequence without a target.

    Raises
    ------
    UsageError
        If it has fewer than two tokens, or is no array of whole numbers.
    """
    array = np.asarray(sequence)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) < 2:
        raise UsageError(
            "a text must have at least one word to predict and one before it, got tokens of "
            f"{array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def batches(lengths: Sequence[int], window: int, stride: int, batch_size: int) -> Iterator[Batch]:
    """Yield the windows of sequences of some lengths, those of one shape together.

    Raises
    ------
    UsageError
        If the batch size is below 1, or window and stride don't fit.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size must be at least 1, got {batch_size}")
    waiting: dict[tuple[int, int], list[tuple[int, Window]]] = {}
    for sequence, length in enumerate(lengths):
        for each in windows(length, window, stride):
            members = waiting.setdefault((each.length, each.first), [])
            members.append((sequence, each))
            if len(members) == batch_size:
                yield Batch(tuple(members))
                members.clear()
    for members in waiting.values():
        if members:
            yield Batch(tuple(members))


def inputs_and_targets(
    sequences: Sequence[Tokens], batch: Batch, device: str | torch.device
) -> tuple[Tensor, Tensor]:
    """Return the inputs of a batch and the token after each, int64, shape (windows, length)."""
    rows = np.stack([sequences[place][each.start : each.stop + 1] for place, each in batch.members])
    tokens = torch.from_numpy(rows).to(device)
    return tokens[:, :-1], tokens[:, 1:]

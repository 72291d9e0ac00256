"""What several mechanisms need: refusals, projections, positions, auxiliary losses."""

from abc import abstractmethod
from types import TracebackType
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.base import (
    AttentionMechanism,
    Explicit,
    HeadInputs,
    Lifted,
    State,
)

__all__ = [
    "AUXILIARY_LOSS",
    "AuxiliaryLoss",
    "UnliftedAttention",
    "merge_heads",
    "offsets",
    "precise",
    "project",
    "refuse_causal",
    "refuse_longer",
    "split_heads",
]

AUXILIARY_LOSS = "auxiliary_loss"
"""Key of the state under which blocks add up their own losses, one number a sample."""


class UnliftedAttention(AttentionMechanism):
    """A mechanism that is no softmax attention on transformed tensors: it writes both paths."""

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Raise: there is no lifted form."""
        raise NotImplementedError(
            f"{type(self).__name__} has no lifted form; use forward or explicit"
        )

    @abstractmethod
    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend; returns the output and the next block's state."""

    @abstractmethod
    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Attend with plain matrix products and also return the weights."""


def refuse_causal(name: str, inputs: HeadInputs) -> None:
    """Raise `UsageError` if a mechanism without a causal form is asked for one."""
    if inputs.causal:
        raise UsageError(
            f"attention {name} has no causal form; choose another for a language model"
        )


def refuse_longer(name: str, inputs: HeadInputs, most: int) -> None:
    """Raise `UsageError` if there are more tokens than a mechanism has parameters for."""
    count = inputs.query.shape[-2]
    if count > most:
        raise UsageError(
            f"attention {name} was built for at most {most} tokens, got {count}; "
            "shorten the input or build the model for more tokens"
        )


def precise(tensor: Tensor) -> Tensor:
    """Return the tensor in float32, or as it is if that would lose digits."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def project(linear: nn.Linear, tokens: Tensor) -> Tensor:
    """Apply a linear layer in the tokens' own precision (under autocast, in that of autocast)."""
    bias: Tensor | None = linear.bias
    if bias is not None:
        bias = bias.to(tokens.dtype)
    return functional.linear(tokens, linear.weight.to(tokens.dtype), bias)


def split_heads(tokens: Tensor, num_heads: int) -> Tensor:
    """Return (batch, tokens, heads * head_dim) as (batch, heads, tokens, head_dim)."""
    batch, count, width = tokens.shape
    return tokens.reshape(batch, count, num_heads, width // num_heads).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Return (batch, heads, tokens, head_dim) as (batch, tokens, heads * head_dim)."""
    return heads.transpose(1, 2).flatten(2)


def offsets(count: int, device: torch.device) -> Tensor:
    """Return query position minus key position, int64, shape (count, count)."""
    places = torch.arange(count, device=device)
    return places.unsqueeze(-1) - places


class AuxiliaryLoss:
    """Collects what the blocks of a model add to the training loss during one forward.

    ::

        with AuxiliaryLoss(network) as auxiliary:
            logits = network(images)
        loss = cross_entropy(logits, labels) + auxiliary.mean()

    Mechanisms whose flag `auxiliary_loss` is set add their loss to the state they hand on, so
    nothing is kept on a module; this reads it there. One forward at a time, in one thread.

    Parameters
    ----------
    model
        Any module that holds mechanisms.
    """

    def __init__(self, model: nn.Module) -> None:
        self._mechanisms = [
            module
            for module in model.modules()
            if isinstance(module, AttentionMechanism) and module.flags.auxiliary_loss
        ]
        self._handles: list[RemovableHandle] = []
        self.per_sample: Tensor | None = None
        """The sum over blocks, shape (batch,); None before a forward or without such a block."""

    def mean(self) -> Tensor | float:
        """Return the mean over the batch, to add to the loss; 0 if no block has one."""
        return 0.0 if self.per_sample is None else self.per_sample.mean()

    def __enter__(self) -> "AuxiliaryLoss":
        self.per_sample = None
        self._handles = [
            each.register_forward_hook(self._read, with_kwargs=False) for each in self._mechanisms
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for handle in self._handles:
            handle.remove()

    def _read(self, _module: nn.Module, _inputs: Any, result: Any) -> None:
        self.per_sample = result[1][AUXILIARY_LOSS]

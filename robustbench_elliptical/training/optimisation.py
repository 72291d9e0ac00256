"""AdamW and its learning-rate schedule, as DeiT uses them."""

import math
from typing import Protocol

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

__all__ = ["OptimiserOptions", "make_optimizer", "make_schedule"]

_WITHOUT_DECAY = ("cls_token", "pos_embed")


class OptimiserOptions(Protocol):
    """What a recipe says about the optimiser, for images and language alike."""

    @property
    def epochs(self) -> int:
        """Passes over the training set."""

    @property
    def learning_rate(self) -> float:
        """Peak learning rate."""

    @property
    def warmup_epochs(self) -> float:
        """Length of the warm-up."""

    @property
    def weight_decay(self) -> float:
        """Decoupled weight decay."""


def make_optimizer(network: nn.Module, options: OptimiserOptions) -> torch.optim.AdamW:
    """Return AdamW with weight decay on matrices only."""
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in network.named_parameters():
        matrix = parameter.ndim > 1 and not name.endswith(_WITHOUT_DECAY)
        (decayed if matrix else plain).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": options.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=options.learning_rate)


def make_schedule(
    optimizer: torch.optim.Optimizer, options: OptimiserOptions, steps_per_epoch: int
) -> LambdaLR:
    """Return the per-step schedule: linear warm-up, then a cosine to zero."""
    warmup = max(1, round(options.warmup_epochs * steps_per_epoch))
    total = options.epochs * steps_per_epoch

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, total - warmup))))

    return LambdaLR(optimizer, factor)

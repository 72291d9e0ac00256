"""Put a model into the state an evaluation needs, and give it back as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["frozen"]


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Put every module into evaluation mode and freeze every parameter, then restore each one.

    Frozen weights save the time and memory of their gradients; gradients of the inputs flow.
    """
    training = [(module, module.training) for module in model.modules()]
    required = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        model.eval()
        model.requires_grad_(requires_grad=False)
        yield
    finally:
        for module, was_training in training:
            module.training = was_training
        for parameter, was_required in required:
            parameter.requires_grad_(was_required)

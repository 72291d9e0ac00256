"""Right gradients of batch normalisation for a batch of one image.

On a CPU torch takes the memory layout of a batch of one for another one where rows of tokens become
a grid of channels, or the other way round, and `torch.nn.functional.batch_norm` then returns a
wrong gradient of its input without a word (seen in torch 2.14.1: convolution, normalisation,
``flatten(2).transpose(1, 2)``, which is how convolutional patch embeddings end). An attack on the
last image of a data set would follow it. In a plain layout, both ways, the gradient is right.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["steady_batch_norms"]


def steady_batch_norms(network: nn.Module) -> None:
    """Give the gradients of single images a plain layout at every batch normalisation.

    Outputs don't change, nor does anything for larger batches. Doing it twice is doing it once.
    """
    for module in network.modules():
        if isinstance(module, _BatchNorm) and (
            _plain_input not in module._forward_pre_hooks.values()
        ):
            module.register_forward_pre_hook(_plain_input)
            module.register_forward_hook(_plain_gradient)


def _plain_input(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    first = inputs[0] if inputs else None
    if isinstance(first, Tensor) and first.ndim > 3 and len(first) == 1:
        return (first.contiguous(), *inputs[1:])
    return None


def _plain_gradient(_module: nn.Module, _inputs: tuple[Any, ...], output: Any) -> None:
    if isinstance(output, Tensor) and output.requires_grad and len(output) == 1:
        output.register_hook(_contiguous)  # type: ignore[no-untyped-call]


def _contiguous(gradient: Tensor) -> Tensor:
    return gradient.contiguous()

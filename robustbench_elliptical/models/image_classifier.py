"""An image classifier that takes pixels in [0, 1]: normalisation lives inside the model."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import AttentionMechanism
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.backbones import AttentionNetwork, BlockTrace
from robustbench_elliptical.models.description import ModelDescription
from robustbench_elliptical.models.outputs import unwrap_logits
from robustbench_elliptical.models.single_images import steady_batch_norms

__all__ = ["ImageClassifier"]


class ImageClassifier(nn.Module):
    """Logits from images in [0, 1].

    Parameters
    ----------
    network
        Takes normalised images (batch, channels, height, width), returns logits (batch, classes):
        as a tensor, as ``.logits`` or ``["logits"]`` of something, or first in a tuple.
    input_shape
        (channels, height, width).
    num_classes
        Number of logits.
    mean, std
        Per channel, in [0, 1] pixels.
    name
        What results call the model.
    description
        What the model is, for results; made from the other arguments if not given.

    Raises
    ------
    UsageError
        If `mean` and `std` don't fit the channels.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        input_shape: tuple[int, int, int],
        num_classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        name: str,
        description: ModelDescription | None = None,
    ) -> None:
        super().__init__()
        steady_batch_norms(network)
        channels = input_shape[0]
        if not (len(mean) == len(std) == channels and all(each > 0 for each in std)):
            raise UsageError(
                f"model {name}: mean and std must be {channels} numbers each, std above 0, "
                f"got mean {list(mean)} and std {list(std)}"
            )
        self.network = network
        self.input_shape = input_shape
        self.num_classes = num_classes
        self.name = name
        per_channel = (1, channels, 1, 1)
        self.register_buffer("mean", torch.tensor(mean).view(per_channel), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(per_channel), persistent=False)
        self.description = description or ModelDescription(
            name=name,
            source="python",
            mean=tuple(mean),
            std=tuple(std),
            input_shape=input_shape,
            num_classes=num_classes,
            parameters=sum(each.numel() for each in network.parameters()),
        )

    def forward(self, images: Tensor, sample_keys: Tensor | None = None) -> Tensor:
        """Return logits, shape (batch, classes).

        Parameters
        ----------
        images
            Shape (batch, channels, height, width), floating-point pixels in [0, 1].
        sample_keys
            Shape (batch,), int64; needed only by mechanisms that draw numbers for each sample.

        Raises
        ------
        UsageError
            If the images have another shape or integer pixels, or the network returns no logits.
        """
        normalised = self.normalised(images)
        if sample_keys is not None and isinstance(self.network, AttentionNetwork):
            output = self.network(normalised, sample_keys)
        else:
            output = self.network(normalised)
        return unwrap_logits(output, self.num_classes, self.name)

    def trace(
        self, images: Tensor, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, list[BlockTrace]]:
        """Return logits by the explicit path and each block's attention weights and state.

        Raises
        ------
        TypeError
            If the network isn't one whose attention is a registered mechanism.
        """
        if not isinstance(self.network, AttentionNetwork):
            raise TypeError(f"model {self.name} has no registered attention mechanism to trace")
        return self.network.trace(self.normalised(images), sample_keys)

    def mechanisms(self) -> list[AttentionMechanism]:
        """Return the attention mechanism of every block; empty for foreign networks."""
        return [each for each in self.modules() if isinstance(each, AttentionMechanism)]

    def set_gradient_mode(self, mode: GradientMode) -> None:
        """Let gradients skip the detached statistics, or flow through them (adaptive attacks).

        It changes no logits. Mechanisms without detached statistics ignore it; the description
        follows where there are some.
        """
        for mechanism in self.mechanisms():
            mechanism.gradient_mode = mode
        if self.description.gradient_mode is not None:
            self.description = self.description.model_copy(update={"gradient_mode": mode})

    def normalised(self, images: Tensor) -> Tensor:
        """Return what the network takes; raises `UsageError` as `forward` does."""
        if images.ndim != 4 or tuple(images.shape[1:]) != self.input_shape:
            expected = ", ".join(map(str, self.input_shape))
            raise UsageError(
                f"model {self.name} takes images of shape (batch, {expected}), "
                f"got {tuple(images.shape)}"
            )
        if not images.is_floating_point():
            raise UsageError(
                f"model {self.name} takes floating-point pixels in [0, 1], got {images.dtype}; "
                "divide 0-255 data by 255"
            )
        return (images - self.mean) / self.std

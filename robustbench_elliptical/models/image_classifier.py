"""An image classifier that takes pixels in [0, 1]: normalisation lives inside the model."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from robustbench_elliptical.models.attention import AttentionMechanism
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.backbones import AttentionVisionTransformer
from robustbench_elliptical.models.backbones.vision_transformer import BlockTrace

__all__ = ["ImageClassifier"]


class ImageClassifier(nn.Module):
    """Logits from images in [0, 1].

    Parameters
    ----------
    network
        Takes normalised images (batch, channels, height, width), returns logits (batch, classes).
    input_shape
        (channels, height, width).
    num_classes
        Number of logits.
    mean, std
        Per channel, in [0, 1] pixels.
    name
        What results call the model.
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
    ) -> None:
        super().__init__()
        self.network = network
        self.input_shape = input_shape
        self.num_classes = num_classes
        self.name = name
        per_channel = (1, input_shape[0], 1, 1)
        self.register_buffer("mean", torch.tensor(mean).view(per_channel), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(per_channel), persistent=False)

    def forward(self, images: Tensor, sample_keys: Tensor | None = None) -> Tensor:
        """Return logits, shape (batch, classes).

        Parameters
        ----------
        images
            Shape (batch, channels, height, width), pixels in [0, 1].
        sample_keys
            Shape (batch,), int64; needed only by mechanisms that draw numbers for each sample.
        """
        normalised = (images - self.mean) / self.std
        if sample_keys is not None and isinstance(self.network, AttentionVisionTransformer):
            logits: Tensor = self.network(normalised, sample_keys)
        else:
            logits = self.network(normalised)
        return logits

    def trace(
        self, images: Tensor, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, list[BlockTrace]]:
        """Return logits by the explicit path and each block's attention weights and state.

        Raises
        ------
        TypeError
            If the network isn't one whose attention is a registered mechanism.
        """
        if not isinstance(self.network, AttentionVisionTransformer):
            raise TypeError(f"model {self.name} has no registered attention mechanism to trace")
        return self.network.trace((images - self.mean) / self.std, sample_keys)

    def mechanisms(self) -> list[AttentionMechanism]:
        """Return the attention mechanism of every block; empty for foreign networks."""
        return [each for each in self.modules() if isinstance(each, AttentionMechanism)]

    def set_gradient_mode(self, mode: GradientMode) -> None:
        """Let gradients skip the detached statistics, or flow through them (adaptive attacks).

        It changes no logits. Mechanisms without detached statistics ignore it.
        """
        for mechanism in self.mechanisms():
            mechanism.gradient_mode = mode

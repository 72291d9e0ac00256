"""One look into a model: what its blocks did to some images."""

from typing import NamedTuple

import torch
from torch import Tensor

from robustbench_elliptical.evaluation.images.internals.measures import (
    class_attention,
    token_similarity,
)
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.models.backbones import AttentionNetwork

__all__ = ["Inside", "can_look", "look"]


class Inside(NamedTuple):
    """What the blocks did, image by image, on the CPU in float64."""

    similarity: Tensor
    """Mean cosine between tokens, shape (batch, depth + 1): at the start, then after each block."""
    maps: tuple[Tensor, ...]
    """For each block the class token's attention, shape (batch, rows, columns), sum 1; empty where
    the attention of some block is no map over patches."""
    metrics: dict[int, Tensor]
    """Diagonal of the metric by block, shape (batch, heads, head_dim)."""

    @property
    def finite(self) -> bool:
        """Whether every number is one."""
        parts = (self.similarity, *self.maps, *self.metrics.values())
        return all(bool(each.isfinite().all()) for each in parts)

    def of(self, places: list[int]) -> "Inside":
        """Return that of some of the images, in the order of their places."""
        return Inside(
            self.similarity[places],
            tuple(each[places] for each in self.maps),
            {block: each[places] for block, each in self.metrics.items()},
        )

    def joined(self, other: "Inside") -> "Inside":
        """Return this and that of further images; maps only where both have them."""
        both = len(self.maps) == len(other.maps)
        pairs = zip(self.maps, other.maps, strict=True) if both else ()
        return Inside(
            torch.cat([self.similarity, other.similarity]),
            tuple(torch.cat(pair) for pair in pairs),
            {
                block: torch.cat([each, other.metrics[block]])
                for block, each in self.metrics.items()
            },
        )


def can_look(model: ImageClassifier) -> bool:
    """Whether the inside of a model can be seen: its network is the toolkit's own."""
    return isinstance(model.network, AttentionNetwork)


@torch.no_grad()
def look(model: ImageClassifier, images: Tensor, sample_keys: Tensor) -> Inside:
    """Forward some images by the explicit path and measure what every block did.

    Parameters
    ----------
    model
        One that `can_look` says can be seen; in evaluation mode.
    images
        Shape (batch, channels, height, width), pixels in [0, 1].
    sample_keys
        Keys of the samples, as the evaluation draws by them, shape (batch,), int64.
    """
    network = model.network
    assert isinstance(network, AttentionNetwork)
    start = network.embed(model.normalised(images))
    _, blocks = model.trace(images, sample_keys)
    similarity = [token_similarity(each) for each in (start, *(block.tokens for block in blocks))]
    rows, columns = network.grid_size
    maps = [
        class_attention(block.weights, network.num_prefix_tokens, rows * columns)
        for block in blocks
    ]
    seen = [each for each in maps if each is not None]
    metrics = {
        index: block.state["metric"].double().cpu()
        for index, block in enumerate(blocks)
        if block.state.get("metric") is not None and block.state["metric"].ndim == 3
    }
    complete = len(seen) == len(maps)
    return Inside(
        torch.stack(similarity, dim=1).cpu(),
        tuple(each.view(-1, rows, columns).cpu() for each in seen) if complete else (),
        metrics,
    )

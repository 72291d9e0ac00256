"""RVT (Mao et al., CVPR 2022, arXiv 2105.07926): a vision transformer built to be robust.

A convolutional stem, stages of blocks with a strided depthwise convolution between two of them,
convolutions in the feed-forward networks, no class token, no positions, and the mean over tokens at
the end. RVT* ("plus") has position-aware attention scaling in the blocks of its first stage, the
mechanism ``rvt_paas``; any other mechanism can take its place. Names are those of the released
checkpoints; a mechanism's own parameters lie under ``attn.mechanism``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch.nn.functional as functional
from timm.layers import DropPath
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import LayerShape, build_mechanism
from robustbench_elliptical.models.backbones.blocks import StateBlock
from robustbench_elliptical.models.backbones.grids import from_grid, to_grid
from robustbench_elliptical.models.backbones.staged import StagedNetwork
from robustbench_elliptical.models.backbones.vision_transformer import MechanismAttention

__all__ = ["RobustVisionTransformer"]

_STEM_WIDTH = 32
_TOKEN_PIXELS = 16


class ConvolutionalFeedForward(nn.Module):
    """A feed-forward network on a square grid, with a depthwise 3x3 convolution inside."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(dim, hidden, 1)
        self.bn1 = nn.BatchNorm2d(hidden)
        self.dwconv = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)
        self.bn2 = nn.BatchNorm2d(hidden)
        self.fc2 = nn.Conv2d(hidden, dim, 1)
        self.bn3 = nn.BatchNorm2d(dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens of the same shape (batch, tokens, dim)."""
        grid = functional.gelu(self.bn1(self.fc1(to_grid(tokens))))
        grid = functional.gelu(self.bn2(self.dwconv(grid)))
        return from_grid(self.bn3(self.fc2(grid)))


class RobustBlock(StateBlock):
    """Attention, then a convolutional feed-forward network."""

    def __init__(self, dim: int, num_heads: int, mlp_ratio: float, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = MechanismAttention(dim, num_heads=num_heads, qkv_bias=True)
        self.drop_path = DropPath(drop_path)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = ConvolutionalFeedForward(dim, int(dim * mlp_ratio))

    def residuals(self, tokens: Tensor, attended: Tensor) -> Tensor:
        """Add the attended tokens, then what the feed-forward network makes of the sum."""
        tokens = tokens + self.drop_path(attended)
        output: Tensor = tokens + self.drop_path(self.mlp(self.norm2(tokens)))
        return output


class _Stem(nn.Module):
    def __init__(self, channels: int, dim: int) -> None:
        super().__init__()
        self.proj = nn.Sequential(
            nn.Conv2d(channels, _STEM_WIDTH, 7, stride=2, padding=2),
            nn.BatchNorm2d(_STEM_WIDTH),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(_STEM_WIDTH, dim, 4, stride=4),
        )

    def forward(self, images: Tensor) -> Tensor:
        grid: Tensor = self.proj(images)
        return grid


class _Stage(nn.Module):
    def __init__(self, blocks: Iterable[RobustBlock]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)


class _Pool(nn.Module):
    def __init__(self, dim: int, following: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(dim, following, 3, stride=2, padding=1, groups=dim)

    def forward(self, tokens: Tensor) -> Tensor:
        return from_grid(self.conv(to_grid(tokens)))


class RobustVisionTransformer(StagedNetwork):
    """RVT with a registered attention mechanism.

    Parameters
    ----------
    mechanism, settings
        Registered name of the attention mechanism, and its settings. A setting ``blocks`` counts
        the blocks of all stages; the first block of a stage has no previous values of its shape.
    depth, num_heads
        Of each stage.
    attention_blocks
        How many blocks from the first one on have the mechanism; the others have plain softmax.
    image_size, channels, head_dim, mlp_ratio, num_classes, drop_path
        As in `RvtArchitecture`; the stochastic depth rate rises linearly over the blocks.

    Raises
    ------
    UsageError
        If the mechanism or one of its settings is unknown or out of range.
    """

    def __init__(
        self,
        mechanism: str,
        settings: Mapping[str, Any],
        *,
        image_size: int,
        channels: int,
        head_dim: int,
        depth: Sequence[int],
        num_heads: Sequence[int],
        mlp_ratio: float,
        attention_blocks: int | None,
        num_classes: int,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__(image_size, channels)
        dims = [heads * head_dim for heads in num_heads]
        rates = [drop_path * index / sum(depth) for index in range(sum(depth))]
        self.patch_embed = _Stem(channels, dims[0])
        self.transformers = nn.ModuleList()
        self.pools = nn.ModuleList(map(_Pool, dims, dims[1:]))
        side, start = image_size // _TOKEN_PIXELS, 0
        last = sum(depth) if attention_blocks is None else attention_blocks
        for dim, heads, count in zip(dims, num_heads, depth, strict=True):
            of_stage = _settings_of_stage(settings, start, count, last)
            blocks = [
                RobustBlock(dim, heads, mlp_ratio, rates[start + index]) for index in range(count)
            ]
            for index, block in enumerate(blocks):
                layer = LayerShape(dim, heads, head_dim, index, count, side * side)
                chosen = (mechanism, of_stage) if start + index < last else ("softmax", {})
                block.attn.mechanism = build_mechanism(chosen[0], layer, chosen[1])
            self.transformers.append(_Stage(blocks))
            side, start = (side + 1) // 2, start + count
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], num_classes)

    @property
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns of patches that enter the first block."""
        side = self.input_shape[-1] // _TOKEN_PIXELS
        return side, side

    @property
    def stages(self) -> Sequence[Iterable[nn.Module]]:
        """The blocks of each stage."""
        return [stage.blocks for stage in self.transformers if isinstance(stage, _Stage)]

    def tokens_of(self, images: Tensor) -> Tensor:
        """Return the tokens of images, shape (batch, tokens, dim)."""
        return from_grid(self.patch_embed(images))

    def classify(self, tokens: Tensor) -> Tensor:
        """Return logits of the mean token."""
        logits: Tensor = self.head(self.norm(tokens.mean(dim=1)))
        return logits


def _settings_of_stage(
    settings: Mapping[str, Any], start: int, count: int, last: int
) -> Mapping[str, Any]:
    """Return settings in which a list of blocks counts from the start of one stage."""
    blocks = settings.get("blocks")
    if not isinstance(blocks, list | tuple):
        return settings
    if any(each >= last for each in blocks):
        raise UsageError(
            f"attention setting blocks must lie in 1..{last - 1}, the blocks that have this "
            f"attention, got {list(blocks)}"
        )
    if start and start in blocks:
        raise UsageError(
            f"attention setting blocks must leave out block {start}, the first of a stage, which "
            f"has no previous values of its shape, got {list(blocks)}"
        )
    inside = tuple(each - start for each in blocks if start <= each < start + count)
    return {**settings, "blocks": inside}

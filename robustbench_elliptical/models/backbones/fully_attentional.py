"""FAN-ViT (Zhou et al., ICML 2022, arXiv 2204.12451): attention over tokens and over channels.

A block mixes tokens by attention, which is where a registered mechanism goes, and then channels: a
convolutional feed-forward network whose output every channel is scaled by, which a softmax over
tokens decides. The convolutional stem, the Fourier positions, the depthwise convolutions and the
class attention at the end are timm's XCiT's. Names are those of the released checkpoints; a
mechanism's own parameters lie under ``blocks.N.attn.mechanism``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from timm.layers import DropPath, trunc_normal_
from timm.models.xcit import LPI, ClassAttentionBlock, ConvPatchEmbed, PositionalEncodingFourier
from torch import Tensor, nn

from robustbench_elliptical.models.attention import HeadInputs, LayerShape, build_mechanism
from robustbench_elliptical.models.attention.shared import split_heads
from robustbench_elliptical.models.backbones.blocks import StateBlock, TokenMixing
from robustbench_elliptical.models.backbones.staged import StagedNetwork

__all__ = ["FullyAttentionalNetwork"]

_Norm = partial(nn.LayerNorm, eps=1e-6)


class SeparateProjections(TokenMixing):
    """One projection for queries, one for keys and values, around a mechanism."""

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Identity()

    def head_inputs(self, tokens: Tensor, sample_keys: Tensor | None) -> HeadInputs:
        """Project tokens of shape (batch, tokens, dim) to queries, keys and values."""
        query, key, value = (
            split_heads(each, self.num_heads)
            for each in (self.q(tokens), *self.kv(tokens).chunk(2, dim=-1))
        )
        return HeadInputs(query, key, value, tokens, sample_keys=sample_keys)


class ConvolvedFeedForward(nn.Module):
    """fc2(h + gamma * convolutions(h)) with h = fc1(tokens); GELU lies between convolutions."""

    def __init__(self, dim: int, hidden: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.fc1 = nn.Linear(dim, hidden)
        self.dwconv = LPI(hidden)
        self.gamma = nn.Parameter(torch.ones(hidden))
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens of the same shape (batch, tokens, dim)."""
        hidden = self.fc1(tokens)
        output: Tensor = self.fc2(hidden + self.gamma * self.dwconv(hidden, self.side, self.side))
        return output


class ChannelMixing(nn.Module):
    """Tokens through a feed-forward network, every channel scaled by a gate.

    The gate of a channel is temperature * sigmoid of the sum over tokens of softmax(q) * w, where w
    is a token's share: softmax(tokens), averaged over the channels of a head. Both softmaxes go
    over the tokens.
    """

    def __init__(self, dim: int, num_heads: int, hidden: int, side: int) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(num_heads, 1, 1))
        self.q = nn.Linear(dim, dim)
        self.mlp_v = ConvolvedFeedForward(dim, hidden, side)
        self.norm_v = nn.LayerNorm(dim)

    def gate(self, tokens: Tensor) -> Tensor:
        """Return what each channel is scaled by, shape (batch, 1, dim)."""
        heads = len(self.temperature)
        queries = split_heads(self.q(tokens), heads).softmax(dim=-2)
        shares = split_heads(tokens, heads).softmax(dim=-2).mean(dim=-1, keepdim=True)
        gate = self.temperature * (queries.transpose(-2, -1) @ shares).sigmoid()
        return gate.flatten(1).unsqueeze(1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens of the same shape (batch, tokens, dim)."""
        mixed: Tensor = self.gate(tokens) * self.norm_v(self.mlp_v(tokens))
        return mixed


class FullyAttentionalBlock(StateBlock):
    """Token mixing, then channel mixing, each scaled channel by channel."""

    def __init__(
        self, dim: int, num_heads: int, mlp_ratio: float, side: int, drop_path: float
    ) -> None:
        super().__init__()
        self.norm1 = _Norm(dim)
        self.attn = SeparateProjections(dim, num_heads)
        self.drop_path = DropPath(drop_path)
        self.norm2 = _Norm(dim)
        self.mlp = ChannelMixing(dim, num_heads, int(dim * mlp_ratio), side)
        self.gamma1 = nn.Parameter(torch.ones(dim))
        self.gamma2 = nn.Parameter(torch.ones(dim))

    def residuals(self, tokens: Tensor, attended: Tensor) -> Tensor:
        """Add the attended tokens, then what channel mixing makes of the sum."""
        tokens = tokens + self.drop_path(self.gamma1 * attended)
        output: Tensor = tokens + self.drop_path(self.gamma2 * self.mlp(self.norm2(tokens)))
        return output


class FullyAttentionalNetwork(StagedNetwork):
    """FAN-ViT with a registered attention mechanism in its token mixing.

    Parameters
    ----------
    mechanism, settings
        Registered name of the attention mechanism, and its settings.
    image_size, patch_size, channels, embed_dim, depth, num_heads, mlp_ratio, class_blocks
        As in `FanArchitecture`.
    num_classes
        Number of logits.
    drop_path
        Stochastic depth rate of every block in training.

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
        patch_size: int,
        channels: int,
        embed_dim: int,
        depth: int,
        num_heads: int,
        mlp_ratio: float,
        class_blocks: int,
        num_classes: int,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__(image_size, channels)
        self.side = image_size // patch_size
        self.patch_embed = ConvPatchEmbed(image_size, patch_size, channels, embed_dim)
        self.pos_embed = PositionalEncodingFourier(dim=embed_dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.blocks = nn.ModuleList()
        for index in range(depth):
            block = FullyAttentionalBlock(embed_dim, num_heads, mlp_ratio, self.side, drop_path)
            layer = LayerShape(
                embed_dim, num_heads, embed_dim // num_heads, index, depth, self.side**2
            )
            block.attn.mechanism = build_mechanism(mechanism, layer, settings)
            self.blocks.append(block)
        self.cls_attn_blocks = nn.ModuleList(
            ClassAttentionBlock(
                embed_dim, num_heads, mlp_ratio, qkv_bias=True, norm_layer=_Norm, tokens_norm=True
            )
            for _ in range(class_blocks)
        )
        self.norm = _Norm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)
        self._initialise()

    def _initialise(self) -> None:
        """Start linear layers, but for those of mechanisms, as timm's XCiT does."""
        trunc_normal_(self.cls_token, std=0.02)
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and ".mechanism." not in name:
                trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    @property
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.side, self.side

    @property
    def stages(self) -> Sequence[Iterable[nn.Module]]:
        """The blocks, which are one stage."""
        return [self.blocks]

    def tokens_of(self, images: Tensor) -> Tensor:
        """Return the tokens of images with their positions, shape (batch, tokens, dim)."""
        tokens, (rows, columns) = self.patch_embed(images)
        positions: Tensor = self.pos_embed(1, rows, columns).flatten(2).transpose(1, 2)
        embedded: Tensor = tokens + positions
        return embedded

    def classify(self, tokens: Tensor) -> Tensor:
        """Let a class token attend to the tokens, and return its logits."""
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        for block in self.cls_attn_blocks:
            tokens = block(tokens)
        logits: Tensor = self.head(self.norm(tokens)[:, 0])
        return logits

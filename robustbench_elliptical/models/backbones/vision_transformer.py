"""timm's VisionTransformer with a registered attention mechanism put in.

State-dict keys and parameter counts are timm's (and so DeiT's); a mechanism with parameters of its
own adds them under ``blocks.N.attn.mechanism``.
"""

from collections.abc import Mapping
from typing import Any

from timm.layers import Attention
from timm.models.vision_transformer import Block, VisionTransformer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from robustbench_elliptical.models.attention import (
    HeadInputs,
    LayerShape,
    State,
    build_mechanism,
)
from robustbench_elliptical.models.backbones.blocks import StateBlock, TokenMixing
from robustbench_elliptical.models.backbones.network import AttentionNetwork, BlockTrace

__all__ = ["AttentionVisionTransformer", "BlockTrace", "MechanismAttention", "MechanismBlock"]


class MechanismAttention(TokenMixing, Attention):  # type: ignore[misc]  # timm is untyped
    """timm's projections around a mechanism; keys are those of `timm.layers.Attention`."""

    qkv: nn.Module
    q_norm: nn.Module
    k_norm: nn.Module
    num_heads: int
    head_dim: int

    def head_inputs(self, tokens: Tensor, sample_keys: Tensor | None) -> HeadInputs:
        """Project tokens of shape (batch, tokens, dim) to queries, keys and values."""
        batch, count, _ = tokens.shape
        projected = self.qkv(tokens).reshape(batch, count, 3, self.num_heads, self.head_dim)
        query, key, value = projected.permute(2, 0, 3, 1, 4).unbind(0)
        return HeadInputs(
            self.q_norm(query), self.k_norm(key), value, tokens, sample_keys=sample_keys
        )


class MechanismBlock(StateBlock, Block):  # type: ignore[misc]  # timm is untyped
    """timm's pre-norm block that passes the attention state along."""

    norm2: nn.Module
    mlp: nn.Module
    ls1: nn.Module
    ls2: nn.Module
    drop_path1: nn.Module
    drop_path2: nn.Module

    def residuals(self, tokens: Tensor, attended: Tensor) -> Tensor:
        """Add the attended tokens, then what the MLP makes of the sum."""
        tokens = tokens + self.drop_path1(self.ls1(attended))
        output: Tensor = tokens + self.drop_path2(self.ls2(self.mlp(self.norm2(tokens))))
        return output


class AttentionVisionTransformer(AttentionNetwork, VisionTransformer):  # type: ignore[misc]  # timm is untyped
    """A vision transformer whose attention is a registered mechanism.

    Parameters
    ----------
    mechanism
        Registered name of the attention mechanism.
    mechanism_settings
        Its settings.
    options
        Arguments of `timm.models.vision_transformer.VisionTransformer`.
    """

    def __init__(
        self, mechanism: str, mechanism_settings: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(block_fn=MechanismBlock, attn_layer=MechanismAttention, **options)
        num_tokens = self.patch_embed.num_patches + self.num_prefix_tokens
        for index, block in enumerate(self.blocks):
            attention = block.attn
            layer = LayerShape(
                dim=self.embed_dim,
                num_heads=attention.num_heads,
                head_dim=attention.head_dim,
                index=index,
                depth=len(self.blocks),
                num_tokens=num_tokens,
            )
            attention.mechanism = build_mechanism(mechanism, layer, mechanism_settings or {})

    @property
    def grid_size(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        rows, columns = self.patch_embed.grid_size
        return rows, columns

    def embed(self, images: Tensor) -> Tensor:
        """Return the tokens that enter the first block, shape (batch, tokens, dim)."""
        tokens: Tensor = self.norm_pre(self.patch_drop(self._pos_embed(self.patch_embed(images))))
        return tokens

    def forward(self, images: Tensor, sample_keys: Tensor | None = None) -> Tensor:
        """Return logits, shape (batch, classes), of normalised images (batch, channels, h, w)."""
        tokens = self.embed(images)
        state: State = {}
        for block in self.blocks:
            if self.grad_checkpointing:
                tokens, state = checkpoint(block, tokens, state, sample_keys, use_reentrant=False)
            else:
                tokens, state = block(tokens, state, sample_keys)
        logits: Tensor = self.forward_head(self.norm(tokens))
        return logits

    def trace(
        self, images: Tensor, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, list[BlockTrace]]:
        """Return the logits by the explicit path and what each block did."""
        tokens = self.embed(images)
        state: State = {}
        blocks: list[BlockTrace] = []
        for block in self.blocks:
            blocks.append(block.trace(tokens, state, sample_keys))
            tokens, state = blocks[-1].tokens, blocks[-1].state
        return self.forward_head(self.norm(tokens)), blocks

"""One post-norm decoder layer, under the parameter names of Transformer-XL."""

from torch import Tensor, nn

from robustbench_elliptical.models.attention import (
    AttentionMechanism,
    HeadInputs,
    LayerShape,
    State,
)
from robustbench_elliptical.models.backbones.vision_transformer import BlockTrace

__all__ = ["DecoderAttention", "DecoderLayer", "FeedForward"]


class DecoderAttention(nn.Module):
    """Projections without bias around a causal mechanism, residual, post-norm."""

    def __init__(self, layer: LayerShape, mechanism: AttentionMechanism, dropout: float) -> None:
        super().__init__()
        self.num_heads = layer.num_heads
        width = layer.num_heads * layer.head_dim
        self.q_net = nn.Linear(layer.dim, width, bias=False)
        self.kv_net = nn.Linear(layer.dim, 2 * width, bias=False)
        self.o_net = nn.Linear(width, layer.dim, bias=False)
        self.drop = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(layer.dim)
        self.mechanism = mechanism

    def head_inputs(self, tokens: Tensor) -> HeadInputs:
        """Project tokens of shape (batch, length, dim) to queries, keys and values."""
        projected = (self.q_net(tokens), *self.kv_net(tokens).chunk(2, dim=-1))
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for each in projected
        )
        return HeadInputs(query, key, value, tokens, causal=True)

    def merge_heads(self, tokens: Tensor, heads: Tensor) -> Tensor:
        """Project (batch, heads, length, head_dim) back and add it to the tokens."""
        attended = self.drop(self.o_net(heads.transpose(1, 2).flatten(2)))
        normalised: Tensor = self.layer_norm(tokens + attended)
        return normalised

    def forward(
        self, tokens: Tensor, state: State, positions: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return tokens, all or those at some positions, and the next layer's state."""
        heads, state = self.mechanism(self.head_inputs(tokens), state)
        if positions is not None:
            tokens, heads = tokens[:, positions], heads[:, :, positions]
        return self.merge_heads(tokens, heads), state


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between, residual, post-norm."""

    def __init__(self, d_model: int, d_inner: int, dropout: float) -> None:
        super().__init__()
        self.CoreNet = nn.Sequential(
            nn.Linear(d_model, d_inner),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(d_inner, d_model),
            nn.Dropout(dropout),
        )
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return tokens of the same shape."""
        normalised: Tensor = self.layer_norm(tokens + self.CoreNet(tokens))
        return normalised


class DecoderLayer(nn.Module):
    """Attention, then a feed-forward network."""

    def __init__(self, attention: DecoderAttention, feed_forward: FeedForward) -> None:
        super().__init__()
        self.dec_attn = attention
        self.pos_ff = feed_forward

    def forward(
        self, tokens: Tensor, state: State, positions: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Return tokens, all or those at some positions, and the next layer's state."""
        tokens, state = self.dec_attn(tokens, state, positions)
        return self.pos_ff(tokens), state

    def trace(self, tokens: Tensor, state: State) -> BlockTrace:
        """Do the same through the explicit path and keep what happened."""
        attention = self.dec_attn
        inputs = attention.head_inputs(tokens)
        heads, weights, state = attention.mechanism.explicit(inputs, state)
        return BlockTrace(weights, self.pos_ff(attention.merge_heads(tokens, heads)), state)

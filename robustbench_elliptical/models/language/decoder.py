"""The paper's language model: a post-norm decoder whose attention is a registered mechanism.

State-dict keys are those of the released model; a mechanism with parameters of its own adds them
under ``layers.N.dec_attn.mechanism``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from robustbench_elliptical.models.attention import (
    AttentionMechanism,
    LayerShape,
    State,
    build_mechanism,
)
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.backbones.vision_transformer import BlockTrace
from robustbench_elliptical.models.language.adaptive_softmax import AdaptiveSoftmax
from robustbench_elliptical.models.language.embedding import SinusoidalPositions, WordEmbedding
from robustbench_elliptical.models.language.layers import (
    DecoderAttention,
    DecoderLayer,
    FeedForward,
)

__all__ = ["LanguageModel"]

_INITIAL_STD = 0.02


class LanguageModel(nn.Module):
    """A causal decoder over a vocabulary of words.

    Parameters
    ----------
    mechanism
        Registered name of the attention mechanism.
    mechanism_settings
        Its settings.
    vocab_size
        Number of words, in falling order of frequency where there are cut-offs.
    layers, d_model, num_heads, d_head, d_inner
        Sizes of the decoder.
    context_length
        Length of the windows it is trained with; positions are defined for every length.
    cutoffs
        Cut-offs of the adaptive softmax; empty for the plain softmax.
    dropout
        Dropout rate in training.
    """

    def __init__(
        self,
        mechanism: str,
        mechanism_settings: Mapping[str, Any],
        *,
        vocab_size: int,
        layers: int,
        d_model: int,
        num_heads: int,
        d_head: int,
        d_inner: int,
        context_length: int,
        cutoffs: Sequence[int] = (),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.context_length = context_length
        self.word_emb = WordEmbedding(vocab_size, d_model)
        self.pos_emb = SinusoidalPositions(d_model)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList()
        for index in range(layers):
            layer = LayerShape(d_model, num_heads, d_head, index, layers, context_length)
            plug_in = build_mechanism(mechanism, layer, mechanism_settings)
            attention = DecoderAttention(layer, plug_in, dropout)
            self.layers.append(DecoderLayer(attention, FeedForward(d_model, d_inner, dropout)))
        self.crit = AdaptiveSoftmax(vocab_size, d_model, cutoffs)
        self._initialise()
        self.crit.projection.weight = self.word_emb.weight

    @property
    def word_vectors(self) -> Tensor:
        """What `embed` gives for each word, shape (vocab_size, d_model)."""
        return self.word_emb.weight * self.word_emb.scale

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the scaled word vectors, shape (batch, length, d_model), without positions."""
        vectors: Tensor = self.word_emb(tokens)
        return vectors

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the hidden states, shape (batch, positions, d_model), of int64 tokens.

        The state at position i is the one that predicts the token after position i. `positions`
        says which are returned, None: all; the last layer skips what no other needs.
        """
        return self.forward_embeddings(self.embed(tokens), positions)

    def forward_embeddings(self, embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the hidden states for what `embed` returned, so that gradients reach it."""
        hidden, state = self._first_input(embeddings), State()
        *layers, last = self._decoder_layers()
        for layer in layers:
            hidden, state = layer(hidden, state)
        hidden, _ = last(hidden, state, positions)
        dropped: Tensor = self.drop(hidden)
        return dropped

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions), in nats.

        Parameters
        ----------
        tokens
            Windows, int64, shape (batch, length).
        targets
            The token after each of them, same shape.
        positions
            Which positions are scored, the same in every window; None: all. The output
            distribution, most of the cost where the vocabulary is large, is computed for no other.
        """
        if positions is None:
            return self.hidden_losses(self(tokens), targets)
        chosen = torch.as_tensor(positions, device=tokens.device)
        return self.hidden_losses(self(tokens, chosen), targets[:, chosen])

    def hidden_losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target, from its hidden state.

        Parameters
        ----------
        hidden
            Shape (batch, positions, d_model).
        targets
            Int64, shape (batch, positions).
        """
        losses: Tensor = self.crit(hidden.flatten(0, 1), targets.flatten())
        return losses.view(targets.shape)

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Return the whole distribution, shape (..., vocab_size), of hidden (..., d_model)."""
        return self.crit.log_probabilities(hidden)

    def trace(self, tokens: Tensor) -> tuple[Tensor, list[BlockTrace]]:
        """Return the hidden states by the explicit path and what each layer did."""
        hidden, state = self._first_input(self.embed(tokens)), State()
        blocks: list[BlockTrace] = []
        for layer in self._decoder_layers():
            blocks.append(layer.trace(hidden, state))
            hidden, state = blocks[-1].tokens, blocks[-1].state
        return self.drop(hidden), blocks

    def mechanisms(self) -> list[AttentionMechanism]:
        """Return the attention mechanism of every layer."""
        return [layer.dec_attn.mechanism for layer in self._decoder_layers()]

    def set_gradient_mode(self, mode: GradientMode) -> None:
        """Let gradients skip detached statistics or flow through them; changes no output."""
        for mechanism in self.mechanisms():
            mechanism.gradient_mode = mode

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        return (cast(DecoderLayer, layer) for layer in self.layers)

    def _first_input(self, embeddings: Tensor) -> Tensor:
        positions = self.pos_emb(embeddings.shape[1]).to(embeddings.dtype)
        first: Tensor = self.drop(embeddings + positions)
        return first

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if ".mechanism." in name:  # a mechanism knows where its own parameters start
                continue
            if name.endswith("layer_norm.weight"):
                nn.init.ones_(parameter)
            elif parameter.ndim > 1:
                nn.init.normal_(parameter, std=_INITIAL_STD)
            else:
                nn.init.zeros_(parameter)

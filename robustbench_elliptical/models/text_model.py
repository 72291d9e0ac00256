"""A language model together with what turns a document into its tokens."""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import Document, Vocabulary
from robustbench_elliptical.models.attention import AttentionMechanism
from robustbench_elliptical.models.attention.base import GradientMode
from robustbench_elliptical.models.description import LanguageDescription
from robustbench_elliptical.models.encoding import DocumentEncoder, EncodedDocument
from robustbench_elliptical.models.language.causality import ScoresTokens

__all__ = ["EvaluatedLanguageModel"]

_GRADIENT_METHODS = ("embed", "forward_embeddings", "hidden_losses")


class EvaluatedLanguageModel(nn.Module):
    """Negative log-likelihoods of documents.

    Parameters
    ----------
    network
        Has ``token_losses(tokens, targets, positions=None)`` as `LanguageModel` has it.
    encoder
        Makes its tokens: a `WordEncoder`, or one of smaller pieces.
    context_length
        Tokens of the longest window that the network is made for.
    name
        What results call the model.
    description
        What the model is, for results; made from the other arguments if not given.

    Raises
    ------
    UsageError
        If the network has no such method.

    Attributes
    ----------
    vocabulary
        The words, where every token is one, else None.
    prefix
        The token that stands before a document's first one; None: the first is not scored.
    """

    def __init__(
        self,
        network: nn.Module,
        encoder: DocumentEncoder,
        *,
        context_length: int,
        name: str,
        description: LanguageDescription | None = None,
    ) -> None:
        super().__init__()
        if not callable(getattr(network, "token_losses", None)):
            raise UsageError(
                f"model {name} must have a method token_losses(tokens, targets, positions), "
                f"got {type(network).__name__}; wrap it in a module that has one"
            )
        self.network = network
        self.name = name
        self.context_length = context_length
        self.vocabulary: Vocabulary | None = encoder.vocabulary
        self.prefix: int | None = encoder.prefix
        self._encoder = encoder
        self.description = description or LanguageDescription(
            name=name,
            source="python",
            vocab_size=encoder.size,
            context_length=context_length,
            parameters=sum(each.numel() for each in network.parameters()),
        )

    @property
    def differentiable(self) -> bool:
        """Whether gradients reach word vectors.

        Then the network has ``embed``, ``forward_embeddings``, ``hidden_losses`` and
        ``word_vectors`` as `LanguageModel` has them.
        """
        return all(hasattr(self.network, method) for method in _GRADIENT_METHODS)

    def encode(self, document: Document, words: Sequence[str] | None = None) -> EncodedDocument:
        """Return the tokens of a document.

        Parameters
        ----------
        document
            What is read.
        words
            Stand in for the document's own words, position by position.

        Raises
        ------
        ValueError
            If their number is not the document's.
        """
        return self._encoder.encode(document, words)

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions); see `LanguageModel`."""
        return cast(ScoresTokens, self.network).token_losses(tokens, targets, positions)

    def mechanisms(self) -> list[AttentionMechanism]:
        """Return the attention mechanism of every layer; empty for foreign networks."""
        return [each for each in self.modules() if isinstance(each, AttentionMechanism)]

    def set_gradient_mode(self, mode: GradientMode) -> None:
        """Let gradients skip detached statistics or flow through them; changes no loss.

        The description follows where something is detached.
        """
        for mechanism in self.mechanisms():
            mechanism.gradient_mode = mode
        if self.description.gradient_mode is not None:
            self.description = self.description.model_copy(update={"gradient_mode": mode})

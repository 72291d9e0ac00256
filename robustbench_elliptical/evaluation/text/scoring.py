"""The losses of documents, each afresh or in one stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.perplexity import check_stride, sequence_losses
from robustbench_elliptical.models import EvaluatedLanguageModel

__all__ = ["Protocol", "TextScore", "score"]

Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Protocol:
    """How a model reads a text."""

    window: int
    """Tokens of context at most."""
    stride: int
    """Tokens by which the window moves."""
    context: Literal["document", "stream"]
    """Whether a document starts afresh or after the documents before it."""
    prefix: int | None
    """The token before the first one of a sequence; None: that one is not scored."""
    batch_size: int
    """Windows read together."""
    device: str
    """Where the model is."""

    @classmethod
    def of(
        cls,
        model: EvaluatedLanguageModel,
        *,
        window: int | None,
        stride: int | None,
        context: Literal["document", "stream"],
        prefix: bool,
        batch_size: int,
        device: str,
    ) -> "Protocol":
        """Fill in what the model decides: its window, a quarter of it as stride, its prefix.

        Raises
        ------
        UsageError
            If the stride does not fit the window, or the window the model.
        """
        size = model.context_length if window is None else window
        if model.vocabulary is None and size > model.context_length:
            raise UsageError(
                f"window must be at most {model.context_length}, all that model {model.name} "
                f"can read, got {size}"
            )
        step = max(1, size // 4) if stride is None else stride
        check_stride(size, step)
        return cls(size, step, context, model.prefix if prefix else None, batch_size, device)

    @property
    def unscored(self) -> int:
        """Tokens at the start of a sequence that have no loss."""
        return 0 if self.prefix is not None else 1


class TextScore(NamedTuple):
    """What a model makes of one document."""

    losses: npt.NDArray[np.float64]
    """Of every token but the first `skipped`, in nats."""
    skipped: int
    """Tokens at the start that have no loss."""
    forwards: int
    """Windows read; of a stream, this document's share of them."""


def score(
    model: EvaluatedLanguageModel, documents: Sequence[Tokens], protocol: Protocol
) -> list[TextScore]:
    """Return the losses of each document's tokens.

    Parameters
    ----------
    model
        In evaluation mode.
    documents
        Tokens of each, int64; in a stream, those that follow one another.
    protocol
        How to read them.
    """
    if protocol.context == "stream":
        return _score_stream(model, documents, protocol)
    return _score_each(model, documents, protocol)


def _score_each(
    model: EvaluatedLanguageModel, documents: Sequence[Tokens], protocol: Protocol
) -> list[TextScore]:
    sequences = [_with_prefix(each, protocol) for each in documents]
    readable = [place for place, each in enumerate(sequences) if len(each) > 1]
    found = _losses(model, [sequences[place] for place in readable], protocol)
    scores = [TextScore(np.empty(0), 0, 0)] * len(documents)
    for place, (losses, forwards) in zip(readable, found, strict=True):
        scores[place] = TextScore(losses, protocol.unscored, forwards)
    return scores


def _score_stream(
    model: EvaluatedLanguageModel, documents: Sequence[Tokens], protocol: Protocol
) -> list[TextScore]:
    ((losses, forwards),) = _losses(
        model, [_with_prefix(np.concatenate(documents), protocol)], protocol
    )
    scores: list[TextScore] = []
    done = 0
    for number, document in enumerate(documents):
        skipped = protocol.unscored if number == 0 else 0
        count = len(document) - skipped
        share = forwards * (done + count) // len(losses) - forwards * done // len(losses)
        scores.append(TextScore(losses[done : done + count], skipped, share))
        done += count
    return scores


def _losses(
    model: EvaluatedLanguageModel, sequences: Sequence[Tokens], protocol: Protocol
) -> list[tuple[npt.NDArray[np.float64], int]]:
    found = sequence_losses(
        model,
        sequences,
        window=protocol.window,
        stride=protocol.stride,
        batch_size=protocol.batch_size,
        device=protocol.device,
    )
    return [(each.losses, each.forwards) for each in found]


def _with_prefix(tokens: Tokens, protocol: Protocol) -> Tokens:
    return tokens if protocol.prefix is None else np.append(protocol.prefix, tokens)

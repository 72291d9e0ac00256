"""A language model, how it reads the text, and what results say of both."""

from dataclasses import dataclass, field

import numpy as np
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import Document, TextSplit
from robustbench_elliptical.evaluation.modes import frozen
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.evaluation.text.documents import DocumentHash, Reading
from robustbench_elliptical.evaluation.text.scoring import Protocol
from robustbench_elliptical.models import EvaluatedLanguageModel
from robustbench_elliptical.models.language import CausalityFinding, causality_probe
from robustbench_elliptical.results import PerplexityProtocol, TextRecord

__all__ = ["Subject", "attackable", "counts_pairs", "make_subject"]

_PROBES = 4
"""Windows that the causality check reads."""


@dataclass
class Subject:
    """A model and how it reads the text."""

    model: EvaluatedLanguageModel
    protocol: Protocol
    causality: CausalityFinding | None
    """What the check for a view of the future saw; none where it could not be made."""
    digest: DocumentHash = field(default_factory=DocumentHash)
    unknown: int = 0
    """Words read so far that the model's vocabulary lacks."""

    def read(self, document: Document) -> None:
        """Take note of a document that is evaluated."""
        self.digest.update(document)
        vocabulary = self.model.vocabulary
        if vocabulary is not None:
            self.unknown += int((vocabulary.encode(document.words) == vocabulary.unk).sum())

    def text_record(self, text: TextSplit, data: str) -> TextRecord:
        """Return what results say of the text; `data` is as the command line names it."""
        return TextRecord(
            name=data,
            split=text.split,
            model=self.model.name,
            documents=self.digest.documents,
            words=self.digest.words,
            unknown_words=None if self.model.vocabulary is None else self.unknown,
            sha256=self.digest.hexdigest(),
        )

    def protocol_record(self) -> PerplexityProtocol:
        """Return what results say of the reading."""
        words = self.model.vocabulary is not None
        return PerplexityProtocol(
            model=self.model.name,
            window=self.protocol.window,
            stride=self.protocol.stride,
            context=self.protocol.context,
            prefix=self._prefix(),
            unit="word or line end" if words else "token of its own tokenizer",
        )

    def _prefix(self) -> str | None:
        prefix, vocabulary = self.protocol.prefix, self.model.vocabulary
        if prefix is None or vocabulary is None:
            return None if prefix is None else f"token {prefix}"
        return vocabulary.words[prefix]


def make_subject(
    model: EvaluatedLanguageModel,
    reading: Reading,
    window: int | None,
    settings: EvaluationSettings,
) -> Subject:
    """Fix how a model reads, and check whether it sees the future.

    Parameters
    ----------
    model
        In evaluation mode.
    reading
        The documents; the check uses windows of theirs.
    window
        Tokens of context at most; the model's own if None.
    settings
        The rest of the protocol.

    Raises
    ------
    UsageError
        If window and stride do not fit.
    """
    protocol = Protocol.of(
        model,
        window=window,
        stride=settings.stride,
        context=settings.context,
        prefix=settings.prefix,
        batch_size=settings.batch_size,
        device=settings.device,
    )
    return Subject(model, protocol, _probe(model, protocol, reading))


def counts_pairs(model: EvaluatedLanguageModel) -> bool:
    """Whether it is a count model, which reads one word whatever the window."""
    return model.description.architecture.get("family") == "bigram"


def attackable(model: EvaluatedLanguageModel) -> bool:
    """Whether an attack on words can ask it for gradients."""
    return model.differentiable and model.vocabulary is not None


def _probe(
    model: EvaluatedLanguageModel, protocol: Protocol, reading: Reading
) -> CausalityFinding | None:
    """Check on windows of the text itself whether the model sees the future."""
    length = protocol.window + 1
    rows: list[np.ndarray] = []
    for document in reading:
        tokens = model.encode(document).tokens
        rows += [tokens[start : start + length] for start in range(0, len(tokens), length)]
        if len(rows) > _PROBES:
            break
    longest = max((len(row) for row in rows), default=0)
    chosen = [row for row in rows if len(row) == longest][:_PROBES]
    if longest < 3:
        return None
    windows = torch.from_numpy(np.stack(chosen)).to(protocol.device)
    try:
        with frozen(model):
            return causality_probe(model, windows, vocab_size=model.description.vocab_size)
    except UsageError:  # losses that are not finite: its documents fail, one by one
        return None

"""What an evaluation of language models found: perplexity under contamination."""

from typing import Any, Literal

from robustbench_elliptical.results.records import Finding, Knowledge, ModelRecord, Record

__all__ = [
    "DOCUMENT_COLUMNS",
    "LanguageModellingResults",
    "PerplexityComparison",
    "PerplexityProtocol",
    "PerplexitySummary",
    "TextAttackRecord",
    "TextRecord",
]

DOCUMENT_COLUMNS = (
    "model",
    "attack",
    "rate",
    "document",
    "outcome",
    "targets",
    "loss",
    "clean_targets",
    "clean_target_loss",
    "words",
    "bytes",
    "eligible",
    "swapped",
    "forwards",
    "backwards",
    "reason",
)
"""Columns of `documents.csv`, one row for each model, attack, rate and document. `outcome` is
`scored` or `failed`; `loss` is the sum over all targets, `clean_target_loss` over those whose word
was not swapped, in nats, both empty where the document failed."""


class TextRecord(Record):
    """What a model was evaluated on."""

    name: str
    """As given on the command line."""
    split: str
    """Which part of the corpus."""
    model: str
    """The model whose vocabulary or tokenizer was used."""
    documents: int
    """Number of documents read: all selected ones, fewer after an interruption."""
    words: int
    """Words read, ends of lines included."""
    unknown_words: int | None
    """How many of them the model's vocabulary lacks; none for a tokenizer without such words."""
    sha256: str
    """Hash of the ids and words evaluated, in order: the same for every model."""


class PerplexityProtocol(Record):
    """How a model's perplexity was measured."""

    model: str
    """Name of the model."""
    window: int
    """Tokens of context at most."""
    stride: int
    """Tokens by which the window moves; every target outside the first window of a sequence sees
    at least window - stride tokens."""
    context: Literal["document", "stream"]
    """Whether a document starts afresh or after the documents before it."""
    prefix: str | None
    """What stands before the first word of a sequence; none: its first token is not scored."""
    unit: str
    """What one target is, the denominator of `perplexity`."""


class TextAttackRecord(Record):
    """One contamination with all its settings."""

    label: str
    """The name used in the rows and summaries."""
    name: str
    """Registered name of the attack."""
    knowledge: Knowledge
    """What it asks of the model."""
    settings: dict[str, Any]
    """Every setting, defaults included."""
    rates: list[float]
    """Shares of the eligible words, in [0, 1], increasing."""


class PerplexitySummary(Record):
    """Perplexity and cost of one model on one contaminated text.

    Perplexities are exp(sum of losses / sum of targets) over all scored documents, none where
    every document failed. Intervals are 95 % by bootstrap over documents, none for fewer than two.
    """

    model: str
    """Name of the model."""
    attack: str
    """Label of the attack; `clean` for none."""
    rate: float
    """Rate asked for, in [0, 1]; 0 for `clean`."""
    realised_rate: float
    """Swapped words over eligible ones."""
    documents: int
    """Documents evaluated, failed ones included."""
    failed: int
    """Documents without a finite loss, left out of every perplexity."""
    targets: int
    """Tokens scored."""
    clean_targets: int
    """Those whose word was not swapped."""
    words: int
    """Words scored, ends of lines included."""
    bytes: int
    """UTF-8 bytes of the text scored."""
    perplexity: float | None
    """Of all targets: the published convention, the price of predicting the swapped words
    included."""
    low: float | None
    """Lower end of its interval."""
    high: float | None
    """Upper end of its interval."""
    clean_target_perplexity: float | None
    """Of the targets that were not swapped, in the contaminated context."""
    clean_target_low: float | None
    """Lower end of its interval."""
    clean_target_high: float | None
    """Upper end of its interval."""
    word_perplexity: float | None
    """Of all targets, per word: what models with different tokens share."""
    byte_perplexity: float | None
    """Of all targets, per byte."""
    forwards: int
    """Windows read, by the attack and for the score."""
    backwards: int
    """Windows that gradients went through."""
    seconds: float
    """Wall time of attack and score."""


class PerplexityComparison(Record):
    """Two models on the same documents: how many times higher one perplexity is."""

    model: str
    """The model."""
    reference: str
    """The model it is compared with."""
    attack: str
    """Label of the attack, or `clean`."""
    rate: float
    """Rate asked for."""
    documents: int
    """Documents that both models scored."""
    ratio: float
    """Perplexity per word of the model over that of the reference."""
    low: float | None
    """Lower end of the 95 % interval, by bootstrap over the documents, drawn for both at once."""
    high: float | None
    """Upper end of the interval."""


class LanguageModellingResults(Record):
    """Language models on contaminated text."""

    task: Literal["language-modelling"] = "language-modelling"
    """What the models do."""
    models: list[ModelRecord]
    """In the order given; sanity floors that were added come last."""
    data: list[TextRecord]
    """One a model."""
    protocols: list[PerplexityProtocol]
    """One a model."""
    attacks: list[TextAttackRecord]
    """In the order given."""
    summaries: list[PerplexitySummary]
    """Everything the tables show; recomputable from the documents."""
    comparisons: list[PerplexityComparison]
    """Every model with the first one."""
    findings: list[Finding]
    """Red flags, most severe first."""

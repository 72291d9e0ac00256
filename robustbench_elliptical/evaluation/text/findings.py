"""Red flags of perplexities. Each rule is one function."""

from collections.abc import Iterator, Mapping, Sequence

from robustbench_elliptical.attacks.text import parse_text_attack
from robustbench_elliptical.evaluation.capabilities import capability_findings
from robustbench_elliptical.evaluation.settings import CLEAN
from robustbench_elliptical.evaluation.text.plan import RANDOM_CONTROL
from robustbench_elliptical.evaluation.text.scoring import Protocol
from robustbench_elliptical.models import EvaluatedLanguageModel
from robustbench_elliptical.models.language import CausalityFinding
from robustbench_elliptical.results import Finding, PerplexitySummary, TextAttackRecord

__all__ = ["find"]

_ORDER = ("error", "warning", "notice")
_CLAIM_TOLERANCE = 0.005
"""Relative difference of a perplexity from the card's that is not yet rounding."""
_RATE_TOLERANCE = 1.5
"""How many times the rate asked for a realised one may be."""


def find(
    models: Sequence[EvaluatedLanguageModel],
    protocols: Mapping[str, Protocol],
    causality: Mapping[str, CausalityFinding],
    attacks: Sequence[TextAttackRecord],
    summaries: Sequence[PerplexitySummary],
    data: str,
    split: str,
    batch_size: int,
) -> list[Finding]:
    """Apply every rule; most severe findings first.

    Parameters
    ----------
    models
        Those with records.
    protocols, causality
        By model name; a model that could not be probed is not in `causality`.
    attacks, summaries
        What was run and found.
    data, split
        As the command line names them.
    batch_size
        How many windows were read together.
    """
    findings = [
        *_failed_documents(summaries),
        *_sees_the_future(protocols, causality),
        *_no_better_than_counting(models, summaries),
        *_no_stronger_than_random(attacks, summaries),
        *_claimed_perplexity_differs(models, protocols, summaries, data, split),
        *_contamination_helps(summaries),
        *_realised_rate_differs(summaries),
        *_replacement_is_unknown(models, attacks),
        *_vocabularies_differ(models),
        *_few_documents(summaries),
        *capability_findings([each.description for each in models], batch_size),
    ]
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def _failed_documents(summaries: Sequence[PerplexitySummary]) -> Iterator[Finding]:
    for each in summaries:
        if each.failed:
            yield Finding(
                id="failed-documents",
                severity="error",
                model=each.model,
                attack=each.attack,
                rate=each.rate,
                evidence=f"{each.failed} of {each.documents} documents have no finite loss and are "
                "in no perplexity.",
                remedy="Read the column reason of documents.csv.",
            )


def _sees_the_future(
    protocols: Mapping[str, Protocol], causality: Mapping[str, CausalityFinding]
) -> Iterator[Finding]:
    for model, found in causality.items():
        if not found.leaks:
            continue
        stride = protocols[model].stride
        yield Finding(
            id="sees-the-future",
            severity="error" if stride > 1 else "warning",
            model=model,
            attack=None,
            evidence=f"Other words from position {found.changed_from} of a window on moved the "
            f"loss before them by up to {found.largest_change:.2g} nats, so the loss of a word "
            "depends on the words after it."
            + ("" if stride > 1 else " At stride 1 that concerns the first window alone."),
            remedy="Its perplexity is no perplexity; use stride=1, or a model that is exactly "
            "causal (metric_scope=prefix).",
        )


def _no_better_than_counting(
    models: Sequence[EvaluatedLanguageModel], summaries: Sequence[PerplexitySummary]
) -> Iterator[Finding]:
    counting = {
        each.name for each in models if each.description.architecture.get("family") == "bigram"
    }
    clean = [each for each in summaries if each.attack == CLEAN]
    floor = next((each.word_perplexity for each in clean if each.model in counting), None)
    for each in clean:
        if floor is None or each.model in counting:
            continue
        if each.word_perplexity is not None and each.word_perplexity >= floor:
            yield Finding(
                id="no-better-than-counting",
                severity="warning",
                model=each.model,
                attack=CLEAN,
                evidence=f"Its perplexity per word is {each.word_perplexity:.1f}, that of counted "
                f"pairs of words {floor:.1f}.",
                remedy="Train it longer, or check vocabulary, scale and attention settings: no "
                "robustness of such a model means anything.",
            )


def _no_stronger_than_random(
    attacks: Sequence[TextAttackRecord], summaries: Sequence[PerplexitySummary]
) -> Iterator[Finding]:
    control = parse_text_attack(RANDOM_CONTROL).label
    worst = {each.label for each in attacks if each.knowledge != "none"}
    random = {(each.model, each.rate): each for each in summaries if each.attack == control}
    for each in summaries:
        other = random.get((each.model, each.rate))
        if each.attack not in worst or other is None or not each.rate:
            continue
        if each.perplexity is None or other.perplexity is None:
            continue
        if each.perplexity <= other.perplexity:
            yield Finding(
                id="no-stronger-than-random",
                severity="warning",
                model=each.model,
                attack=each.attack,
                rate=each.rate,
                evidence=f"Its perplexity is {each.perplexity:.2f}, that of random words at the "
                f"same rate {other.perplexity:.2f}.",
                remedy="Raise its budget.",
            )


def _claimed_perplexity_differs(
    models: Sequence[EvaluatedLanguageModel],
    protocols: Mapping[str, Protocol],
    summaries: Sequence[PerplexitySummary],
    data: str,
    split: str,
) -> Iterator[Finding]:
    clean = {each.model: each for each in summaries if each.attack == CLEAN}
    for model in models:
        protocol, measured = protocols[model.name], clean.get(model.name)
        if measured is None or measured.perplexity is None or protocol.prefix is None:
            continue
        claim = model.description.claimed_measurement(
            data,
            split,
            window=protocol.window,
            stride=protocol.stride,
            context=protocol.context,
        )
        if claim is None or claim.n != measured.targets:
            continue
        if abs(measured.perplexity / claim.perplexity - 1) > _CLAIM_TOLERANCE:
            yield Finding(
                id="claimed-perplexity-differs",
                severity="warning",
                model=model.name,
                attack=CLEAN,
                evidence=f"The card claims a perplexity of {claim.perplexity:.2f}, measured "
                f"{measured.perplexity:.2f}.",
                remedy="Check that text, vocabulary and attention settings are the card's.",
            )


def _contamination_helps(summaries: Sequence[PerplexitySummary]) -> Iterator[Finding]:
    clean = {each.model: each.perplexity for each in summaries if each.attack == CLEAN}
    for each in summaries:
        before = clean.get(each.model)
        if each.attack == CLEAN or before is None or each.perplexity is None or not each.rate:
            continue
        if each.perplexity < before:
            yield Finding(
                id="contamination-helps",
                severity="warning",
                model=each.model,
                attack=each.attack,
                rate=each.rate,
                evidence=f"Its perplexity is {each.perplexity:.2f}, that of the clean text "
                f"{before:.2f}: the swapped words are easier to predict than those they replace.",
                remedy="Quote the clean-target perplexity, or use replacement=random-word.",
            )


def _realised_rate_differs(summaries: Sequence[PerplexitySummary]) -> Iterator[Finding]:
    told: set[tuple[str, float]] = set()
    for each in summaries:
        if (each.attack, each.rate) in told or not each.rate:
            continue
        if not each.rate / _RATE_TOLERANCE <= each.realised_rate <= each.rate * _RATE_TOLERANCE:
            told.add((each.attack, each.rate))
            yield Finding(
                id="realised-rate-differs",
                severity="notice",
                model=each.model,
                attack=each.attack,
                rate=each.rate,
                evidence=f"{each.realised_rate:.2%} of the eligible words were swapped, not "
                f"{each.rate:.2%}.",
                remedy="Quote the realised rate; short lines get at least one swap in mode=paper.",
            )


def _replacement_is_unknown(
    models: Sequence[EvaluatedLanguageModel], attacks: Sequence[TextAttackRecord]
) -> Iterator[Finding]:
    swaps = [each.label for each in attacks if each.settings.get("replacement") == "AAA"]
    for model in models:
        if swaps and model.vocabulary is not None and "AAA" not in model.vocabulary:
            yield Finding(
                id="replacement-is-unknown",
                severity="notice",
                model=model.name,
                attack=swaps[0],
                evidence="AAA is not in the model's vocabulary: it reads and predicts <unk>, the "
                "word that stands for every rare one.",
                remedy="Quote the clean-target perplexity beside it, or use "
                "replacement=random-word.",
            )


def _vocabularies_differ(models: Sequence[EvaluatedLanguageModel]) -> Iterator[Finding]:
    known = {each.name: each.description.vocabulary_sha256 for each in models}
    first = next(iter(known), "")
    for name, sha256 in known.items():
        if sha256 != known[first]:
            yield Finding(
                id="vocabularies-differ",
                severity="notice",
                model=name,
                attack=None,
                evidence=f"It does not have the vocabulary of {first}, so neither their targets "
                "nor what counts as <unk> are the same.",
                remedy="Compare them per word or per byte only, and never a model with <unk> with "
                "one without.",
            )


def _few_documents(summaries: Sequence[PerplexitySummary]) -> Iterator[Finding]:
    for each in summaries:
        if each.attack == CLEAN and each.documents - each.failed < 2:
            yield Finding(
                id="too-few-documents",
                severity="notice",
                model=each.model,
                attack=CLEAN,
                evidence="One document has no interval: documents are what is drawn again.",
                remedy="Give a text of several documents.",
            )

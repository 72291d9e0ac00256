"""Language models: a network, weights and a vocabulary that fit each other, from a card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import Vocabulary
from robustbench_elliptical.models.cards import LanguageCard, resolved_attention, vocabulary_path
from robustbench_elliptical.models.checkpoints import WeightsKind
from robustbench_elliptical.models.description import LanguageDescription
from robustbench_elliptical.models.encoding import WordEncoder
from robustbench_elliptical.models.hashing import check_sha256, file_sha256, state_sha256
from robustbench_elliptical.models.language.architecture import (
    BigramArchitecture,
    build_language_model,
)
from robustbench_elliptical.models.language.kneser_ney import BigramModel
from robustbench_elliptical.models.language.weights import load_language_weights
from robustbench_elliptical.models.loading.checkpoint import (
    Weights,
    count_parameters,
    full_name,
    gradient_mode,
    read_weights,
)
from robustbench_elliptical.models.loading.finding import FoundCard
from robustbench_elliptical.models.text_model import EvaluatedLanguageModel
from robustbench_elliptical.models.weights import load_strictly

__all__ = ["language_model_from_card"]


class _Words(NamedTuple):
    vocabulary: Vocabulary
    path: Path
    sha256: str
    brought: bool
    """Whether the user chose other words than the card's own."""


def language_model_from_card(
    card: LanguageCard,
    path: Path,
    *,
    checkpoint: Path | None = None,
    vocabulary: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    weights: WeightsKind = "model",
) -> EvaluatedLanguageModel:
    """Return a card's language model in evaluation mode, on the CPU.

    Parameters
    ----------
    card, path
        The card and where it lies.
    checkpoint, vocabulary, overrides, weights
        As `checkpoint`, `vocabulary`, `attention` and `weights` of `load_model`.

    Raises
    ------
    UsageError
        If its files don't fit together, or a setting is out of range.
    """
    changes = dict(overrides or {})
    settings = resolved_attention(card, changes)
    words = _read_words(card, path, vocabulary)
    words.vocabulary.check_fits(card.architecture.vocab_size, f"model {card.name}")
    loaded = _read_weights(FoundCard(card, path, checkpoint), weights)
    network = _network(card, changes, loaded)
    name = full_name(card, changes, loaded)
    if words.brought:
        name += f",vocabulary={words.path.stem}"
    context_length = card.architecture.context_length
    return EvaluatedLanguageModel(
        network,
        WordEncoder(words.vocabulary),
        context_length=context_length,
        name=name,
        description=LanguageDescription(
            name=name,
            source="card",
            family=card.family,
            seed=None if loaded.brought else card.seed,
            architecture=card.architecture.model_dump(mode="json"),
            attention=card.attention.mechanism if card.attention else None,
            attention_settings=settings,
            attention_overrides=changes,
            gradient_mode=gradient_mode(card, settings),
            checkpoint_file=loaded.path.name,
            checkpoint_sha256=loaded.sha256,
            weights=weights,
            weights_sha256=state_sha256(network.state_dict()),
            measured=card.measured if loaded.keep_promises(changes) and not words.brought else (),
            vocabulary_file=words.path.name,
            vocabulary_sha256=words.sha256,
            vocab_size=len(words.vocabulary),
            context_length=context_length,
            parameters=count_parameters(network),
        ),
    ).eval()


def _read_words(card: LanguageCard, card_path: Path, chosen: Path | None) -> _Words:
    path = chosen or vocabulary_path(card, card_path)
    if path is None:
        raise UsageError(
            f"model {card.name} comes without its vocabulary; give it with vocabulary=PATH"
        )
    vocabulary = Vocabulary.load(path)
    stated = card.vocabulary.sha256 if card.vocabulary else None
    if stated is not None and chosen is None:
        check_sha256(path, stated, "vocabulary")
    sha256 = file_sha256(path)
    return _Words(vocabulary, path, sha256, stated is not None and sha256 != stated)


def _read_weights(found: FoundCard, kind: WeightsKind) -> Weights:
    try:
        return read_weights(found, kind)
    except UsageError as error:
        if "mem_transformer" not in str(error):
            raise
        raise UsageError(
            f"model {found.card.name}: its checkpoint is a whole module as the authors' code saves "
            "it; convert that once with elliptical-robust models convert"
        ) from None


def _network(card: LanguageCard, overrides: Mapping[str, Any], weights: Weights) -> nn.Module:
    source, sizes = f"checkpoint {weights.path}", card.architecture
    if isinstance(sizes, BigramArchitecture):
        bigram = BigramModel(sizes.vocab_size, sizes.pairs)
        load_strictly(bigram, weights.state, source)
        bigram.check(source)
        return bigram
    assert card.attention is not None  # a decoder's card states it
    with torch.random.fork_rng(devices=[]):
        decoder = build_language_model(sizes, card.attention, overrides=overrides)
    load_language_weights(decoder, weights.state, source)
    return decoder

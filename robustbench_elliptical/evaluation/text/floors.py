"""The sanity floor: a count model with the vocabulary of the models that are evaluated."""

from collections.abc import Sequence

import torch

from robustbench_elliptical.models import (
    EvaluatedLanguageModel,
    LanguageCard,
    list_models,
    load_model,
)

__all__ = ["floors"]


def floors(
    models: Sequence[EvaluatedLanguageModel], device: torch.device
) -> list[EvaluatedLanguageModel]:
    """Return the shipped count models that the given ones must beat, but for those given.

    Parameters
    ----------
    models
        What is evaluated.
    device
        Where the models go.
    """
    vocabularies = {model.description.vocabulary_sha256 for model in models}
    names = {model.name for model in models}
    found = [
        load_model(card.name, device=device)
        for card in list_models()
        if isinstance(card, LanguageCard)
        and card.architecture.family == "bigram"
        and card.name not in names
        and card.vocabulary is not None
        and card.vocabulary.sha256 in vocabularies
    ]
    return [each for each in found if isinstance(each, EvaluatedLanguageModel)]

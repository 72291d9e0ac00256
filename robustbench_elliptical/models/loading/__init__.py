"""Load a model by name, whatever its task.

The attention of a model is never guessed. Elliptical and plain softmax attention have the same
tensors, so a checkpoint fits both and the wrong one only scores badly; a checkpoint alone is
therefore refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import hf_models, timm_models
from robustbench_elliptical.models.cards import ImageCard
from robustbench_elliptical.models.checkpoints import WeightsKind
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.models.loading.finding import FoundCard, find_card
from robustbench_elliptical.models.loading.image import classifier_from_card, classifier_from_timm
from robustbench_elliptical.models.loading.language import language_model_from_card
from robustbench_elliptical.models.text_model import EvaluatedLanguageModel

__all__ = [
    "FoundCard",
    "classifier_from_card",
    "find_card",
    "language_model_from_card",
    "load_model",
]


def load_model(
    name: str,
    *,
    checkpoint: str | Path | None = None,
    card: str | Path | None = None,
    attention: Mapping[str, Any] | None = None,
    weights: WeightsKind = "model",
    vocabulary: str | Path | None = None,
    device: str | torch.device = "cpu",
) -> ImageClassifier | EvaluatedLanguageModel:
    """Return a model in evaluation mode, in float32, of the class that its task has.

    Parameters
    ----------
    name
        The name of a shipped card; a card file (``.toml``); a checkpoint file, with `card`;
        ``timm:NAME``, with `checkpoint`; or ``hf:DIR``, a folder with a Hugging Face language
        model.
    checkpoint
        Weights for a card that has none, or to use instead of the card's own; their hash is then
        not compared with the card's. Required for timm: nothing is downloaded.
    card
        For a checkpoint file: the card file, or the name of a shipped card.
    attention
        Attention settings that replace those of the card, for controls such as
        ``{"metric": "identity"}``.
    weights
        ``"model_ema"`` for the averaged weights of a training container.
    vocabulary
        Words for a language model whose card has none, or to use instead of the card's own.
    device
        Where the model goes.

    Raises
    ------
    UsageError
        If the model is unknown, its files don't fit together, or a setting is out of range.
    """
    where = _checked_device(device)
    if name.startswith(timm_models.PREFIX):
        if card is not None or attention or vocabulary is not None:
            raise UsageError(
                f"model {name} takes neither a card nor attention settings nor a vocabulary"
            )
        return classifier_from_timm(name, checkpoint, weights).to(where)
    if name.startswith(hf_models.PREFIX):
        if any((card, attention, vocabulary, checkpoint)) or weights != "model":
            raise UsageError(f"model {name} takes no options; the folder holds all of it")
        return hf_models.load_hf(name).to(where)
    found = find_card(name, checkpoint, card)
    options: dict[str, Any] = {
        "checkpoint": found.checkpoint,
        "overrides": attention,
        "weights": weights,
    }
    if not isinstance(found.card, ImageCard):
        options["vocabulary"] = None if vocabulary is None else Path(vocabulary)
        return language_model_from_card(found.card, found.path, **options).to(where)
    if vocabulary is not None:
        raise UsageError(f"model {found.card.name} classifies images, so it takes no vocabulary")
    return classifier_from_card(found.card, found.path, **options).to(where)


def _checked_device(device: str | torch.device) -> torch.device:
    try:
        where = torch.device(device)
    except RuntimeError:
        raise UsageError(
            f"device must be one that torch knows, such as cpu or cuda:0, got {device!r}"
        ) from None
    if where.type == "cuda" and (where.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"device {device} is not there: torch sees {torch.cuda.device_count()} CUDA devices; "
            "use cpu"
        )
    return where

"""Which model to load, as the command line writes it: ``NAME,key=value,...``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import torch

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.specs import parse_settings
from robustbench_elliptical.models import hf_models, timm_models
from robustbench_elliptical.models.attention import MECHANISMS, MechanismSettings
from robustbench_elliptical.models.cards import Card, ImageCard, Task, resolved_attention
from robustbench_elliptical.models.checkpoints import WeightsKind
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.models.loading import find_card, load_model
from robustbench_elliptical.models.text_model import EvaluatedLanguageModel

__all__ = ["ModelChoice", "parse_model"]

_IMAGE_OPTIONS = ("checkpoint", "card", "weights")
_LOADING_OPTIONS = (*_IMAGE_OPTIONS, "vocabulary")
_PATHS = ("checkpoint", "card", "vocabulary")


@dataclass(frozen=True)
class ModelChoice:
    """The arguments of `load_model`, checked as far as that goes without reading weights."""

    name: str
    """A card's name, a card file, a checkpoint file, ``timm:NAME`` or ``hf:DIR``."""
    checkpoint: str | None = None
    """Weights file."""
    card: str | None = None
    """Card of a checkpoint file."""
    weights: WeightsKind = "model"
    """Which weights of a training container."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    """Attention settings that replace those of the card."""
    vocabulary: str | None = None
    """Vocabulary file of a language model."""

    @property
    def task(self) -> Task:
        """What the model does; raises `UsageError` if there is none of that name."""
        if self.name.startswith(timm_models.PREFIX):
            return "image-classification"
        if self.name.startswith(hf_models.PREFIX):
            return "language-modelling"
        return find_card(self.name, self.checkpoint, self.card).card.task

    def load(self, device: str | torch.device = "cpu") -> ImageClassifier | EvaluatedLanguageModel:
        """Return the model; see `load_model`."""
        return load_model(
            self.name,
            checkpoint=self.checkpoint,
            card=self.card,
            attention=self.attention,
            weights=self.weights,
            vocabulary=self.vocabulary,
            device=device,
        )


def parse_model(text: str) -> ModelChoice:
    """Parse ``NAME`` or ``NAME,key=value,...``.

    The keys ``checkpoint``, ``card`` and ``weights``, and ``vocabulary`` for a language model, say
    what to load; every other key is a setting of the model's attention. A setting that is a list is
    written with plus signs (``blocks=1+2+3``). A path after a key may hold commas, up to the next
    ``key=``; one in place of the name may not.

    Raises
    ------
    UsageError
        If the text is malformed, the model or a key is unknown, or a value is out of range.
    """
    name, comma, rest = text.partition(",")
    name = name.strip()
    if not name:
        raise UsageError(f"model must be NAME or NAME,key=value,..., got {text!r}")
    options = parse_settings(rest, f"model {name}", _PATHS) if comma else {}
    settings = {key: options.pop(key) for key in list(options) if key not in _LOADING_OPTIONS}
    weights = _weights(options.get("weights", "model"), name)
    checkpoint, card = options.get("checkpoint"), options.get("card")
    if name.startswith(hf_models.PREFIX):
        _refuse_unknown({**options, **settings}, name, ())
        return ModelChoice(name)
    if name.startswith(timm_models.PREFIX):
        _refuse_unknown({**options, **settings}, name, _IMAGE_OPTIONS)
        return ModelChoice(name, checkpoint, card, weights)
    found = find_card(name, checkpoint, card).card
    known = _IMAGE_OPTIONS if isinstance(found, ImageCard) else _LOADING_OPTIONS
    attention = _attention(settings, found, name, known)
    _refuse_unknown(options, name, known)
    return ModelChoice(name, checkpoint, card, weights, attention, options.get("vocabulary"))


def _weights(text: str, name: str) -> WeightsKind:
    if text == "model":
        return "model"
    if text == "model_ema":
        return "model_ema"
    raise UsageError(f"weights of model {name} must be model or model_ema, got {text!r}")


def _attention(
    settings: Mapping[str, str], card: Card, name: str, options: tuple[str, ...]
) -> dict[str, Any]:
    """Return the values of attention settings written as text."""
    if card.attention is None:
        _refuse_unknown(settings, name, options)
        return {}
    schema = MECHANISMS[card.attention.mechanism].Settings
    _refuse_unknown(settings, name, (*options, *schema.model_fields))
    written = {key: _split_list(schema, key, text) for key, text in settings.items()}
    checked = validated(
        schema, {**card.attention.settings, **written}, f"attention {card.attention.mechanism}"
    ).model_dump(mode="json")
    overrides = {key: checked[key] for key in written}
    resolved_attention(card, overrides)
    return overrides


def _refuse_unknown(given: Mapping[str, str], name: str, known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise UnknownNameError(f"option of model {name}", key, known)


def _split_list(schema: type[MechanismSettings], key: str, text: str) -> Any:
    """Return ``1+2`` as a list if the setting is one and has no such word among its values."""
    annotation = schema.model_fields[key].annotation
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    is_list = any(get_origin(kind) in (tuple, list) for kind in kinds)
    return text.split("+") if is_list and text not in words else text

"""Image classifiers: a network from a card or from timm, weights from a file, strictly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.architecture import build_network
from robustbench_elliptical.models.cards import ImageCard, resolved_attention
from robustbench_elliptical.models.checkpoints import WeightsKind, read_checkpoint
from robustbench_elliptical.models.description import ModelDescription
from robustbench_elliptical.models.hashing import file_sha256, state_sha256
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.models.loading.checkpoint import (
    count_parameters,
    full_name,
    gradient_mode,
    read_weights,
)
from robustbench_elliptical.models.loading.finding import FoundCard
from robustbench_elliptical.models.loading.key_names import with_own_names
from robustbench_elliptical.models.timm_models import (
    PREFIX,
    build_timm,
    timm_data_config,
    with_timm_names,
)
from robustbench_elliptical.models.weights import load_strictly

__all__ = ["classifier_from_card", "classifier_from_timm"]


def classifier_from_card(
    card: ImageCard,
    path: Path,
    *,
    checkpoint: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    weights: WeightsKind = "model",
) -> ImageClassifier:
    """Return a card's classifier in evaluation mode, on the CPU.

    Parameters
    ----------
    card, path
        The card and where it lies.
    checkpoint, overrides, weights
        As `checkpoint`, `attention` and `weights` of `load_model`.

    Raises
    ------
    UsageError
        If its files don't fit together, or a setting is out of range.
    """
    changes = dict(overrides or {})
    settings = resolved_attention(card, changes)
    loaded = read_weights(FoundCard(card, path, checkpoint), weights)
    with torch.random.fork_rng(devices=[]):
        network = build_network(card.architecture, card.attention, overrides=changes).float()
    load_strictly(network, with_own_names(loaded.state, card), f"checkpoint {loaded.path}")
    size = card.architecture.image_size
    return _classifier(
        network,
        ModelDescription(
            name=full_name(card, changes, loaded),
            source="card",
            task=card.task,
            family=card.family,
            seed=None if loaded.brought else card.seed,
            architecture=card.architecture.model_dump(mode="json"),
            attention=card.attention.mechanism,
            attention_settings=settings,
            attention_overrides=changes,
            gradient_mode=gradient_mode(card, settings),
            measured=card.measured if loaded.keep_promises(changes) else (),
            preprocessing=card.preprocessing,
            mean=card.input.mean,
            std=card.input.std,
            input_shape=(card.architecture.channels, size, size),
            num_classes=card.architecture.num_classes,
            classes=card.classes,
            parameters=count_parameters(network),
            checkpoint_file=loaded.path.name,
            checkpoint_sha256=loaded.sha256,
            weights=weights,
            weights_sha256=state_sha256(network.state_dict()),
        ),
    )


def classifier_from_timm(
    name: str, checkpoint: str | Path | None, weights: WeightsKind = "model"
) -> ImageClassifier:
    """Return timm's classifier with the user's weights, in evaluation mode, on the CPU.

    Raises
    ------
    UsageError
        If timm has no such classifier, or the weights are missing or don't fit it.
    """
    if checkpoint is None:
        raise UsageError(
            f"model {name} needs its weights as checkpoint=PATH; nothing is downloaded"
        )
    timm_name = name.removeprefix(PREFIX)
    with torch.random.fork_rng(devices=[]):
        network = build_timm(timm_name).float()
    state = with_timm_names(read_checkpoint(checkpoint, weights=weights), network)
    load_strictly(network, state, f"checkpoint {checkpoint}")
    input_shape, normalisation, preprocessing = timm_data_config(network)
    return _classifier(
        network,
        ModelDescription(
            name=name,
            source="timm",
            family=name,
            architecture={"family": "timm", "model": timm_name},
            preprocessing=preprocessing,
            mean=normalisation.mean,
            std=normalisation.std,
            input_shape=input_shape,
            num_classes=int(network.num_classes),  # type: ignore[arg-type]
            parameters=count_parameters(network),
            checkpoint_file=Path(checkpoint).name,
            checkpoint_sha256=file_sha256(checkpoint),
            weights=weights,
            weights_sha256=state_sha256(network.state_dict()),
        ),
    )


def _classifier(network: nn.Module, description: ModelDescription) -> ImageClassifier:
    return ImageClassifier(
        network,
        input_shape=description.input_shape,
        num_classes=description.num_classes,
        mean=description.mean,
        std=description.std,
        name=description.name,
        description=description,
    ).eval()

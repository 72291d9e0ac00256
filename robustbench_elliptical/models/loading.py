"""Load a model by name: network from a card or from timm, weights from a file, strictly.

The attention of a model is never guessed. Elliptical and plain softmax attention have the same
tensors, so a checkpoint fits both and the wrong one only scores badly; a checkpoint alone is
therefore refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.models.architecture import build_network
from robustbench_elliptical.models.attention import MECHANISMS
from robustbench_elliptical.models.cards import (
    Card,
    checkpoint_path,
    load_card,
    resolved_attention,
    shipped_cards,
)
from robustbench_elliptical.models.checkpoints import WeightsKind, read_checkpoint
from robustbench_elliptical.models.description import ModelDescription
from robustbench_elliptical.models.hashing import check_sha256, file_sha256, state_sha256
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.models.timm_models import PREFIX, build_timm, timm_data_config
from robustbench_elliptical.models.weights import load_strictly

__all__ = ["find_card", "load_model", "setting_text"]

_WAYS_OUT = (
    "Give the name of a card (robustbench_elliptical.models.list_models()), a card file ending in "
    ".toml, a checkpoint together with card=CARD, or timm:NAME with checkpoint=PATH."
)
_CHECKPOINT_SUFFIXES = {".pth", ".pt", ".safetensors", ".bin", ".ckpt", ".tar", ".toml"}


class FoundCard(NamedTuple):
    """A card, where it lies, and the checkpoint that the user chose instead of its own."""

    card: Card
    path: Path
    checkpoint: Path | None


def load_model(
    name: str,
    *,
    checkpoint: str | Path | None = None,
    card: str | Path | None = None,
    attention: Mapping[str, Any] | None = None,
    weights: WeightsKind = "model",
    device: str | torch.device = "cpu",
) -> ImageClassifier:
    """Return a model in evaluation mode, in float32.

    Parameters
    ----------
    name
        A shipped card's name; a card file (``my-card.toml``); a checkpoint file, with `card`; or
        ``timm:NAME``, with `checkpoint`.
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
    device
        Where the model goes.

    Raises
    ------
    UsageError
        If the model is unknown, its files don't fit together, or a setting is out of range.
    """
    where = _checked_device(device)
    if name.startswith(PREFIX):
        if card is not None or attention:
            raise UsageError(f"model {name} takes neither a card nor attention settings")
        model = _from_timm(name, checkpoint, weights)
    else:
        model = _from_card(find_card(name, checkpoint, card), attention or {}, weights)
    return model.eval().to(where)


def find_card(
    name: str, checkpoint: str | Path | None = None, card: str | Path | None = None
) -> FoundCard:
    """Return the card that `name` stands for; the arguments are those of `load_model`.

    Raises
    ------
    UsageError
        If there is none, or the arguments contradict each other.
    """
    shipped = shipped_cards()
    chosen = None if checkpoint is None else Path(checkpoint)
    if card is not None:
        path = shipped.get(str(card), Path(card))
        if path.suffix != ".toml":
            raise UnknownNameError("card", str(card), shipped, "A card file ends in .toml.")
        found = load_card(path)
        if chosen is None and (name != found.name or Path(name).exists()):
            return FoundCard(found, path, Path(name))
        if name != found.name:
            raise UsageError(
                f"model {name!r} with both a checkpoint and a card must be the card's name "
                f"{found.name!r}; give the checkpoint once"
            )
        return FoundCard(found, path, chosen)
    if name in shipped:
        return FoundCard(load_card(shipped[name]), shipped[name], chosen)
    path = Path(name)
    if path.suffix == ".toml" and path.exists():
        return FoundCard(load_card(path), path, chosen)
    if path.is_file():
        raise UsageError(
            f"model {name!r} is a checkpoint without a card, and its attention can't be told from "
            "its tensors (an Elliptical and a softmax checkpoint hold the same ones); say what it "
            "is with card=CARD, a shipped card's name or a file ending in .toml"
        )
    raise UnknownNameError("model", name, shipped, _remark(name) + _WAYS_OUT)


def _remark(name: str) -> str:
    """Return what else a message should say about a name that is no model."""
    path = Path(name)
    if "," in name:
        return "What follows the comma is for parse_model or the command line. "
    if path.is_dir():
        return "It is a folder; name the file in it. "
    if path.suffix in _CHECKPOINT_SUFFIXES or len(path.parts) > 1:
        return f"There is no file {name} either. "
    return ""


def setting_text(value: Any) -> str:
    """Return an attention setting as the command line writes it: lists joined by ``+``."""
    if isinstance(value, list | tuple):
        return "+".join(str(each) for each in value)
    return str(value)


def _from_card(
    found: FoundCard, overrides: Mapping[str, Any], weights: WeightsKind
) -> ImageClassifier:
    card = found.card
    settings = resolved_attention(card, overrides)
    own = checkpoint_path(card, found.path)
    checkpoint = found.checkpoint or own
    if checkpoint is None:
        raise UsageError(
            f"model {card.name} comes without weights; give yours with checkpoint=PATH"
        )
    expected = card.checkpoint.sha256 if card.checkpoint and not found.checkpoint else None
    state = read_checkpoint(checkpoint, weights=weights)
    sha256 = check_sha256(checkpoint, expected) if expected else file_sha256(checkpoint)
    with torch.random.fork_rng(devices=[]):
        network = build_network(card.architecture, card.attention, overrides=overrides).float()
    load_strictly(network, state, f"checkpoint {checkpoint}")
    # What the card measured holds for its own weights, as it says they are to be used.
    brought = found.checkpoint is not None and own is not None
    changes_logits = bool(set(overrides) - {"gradient_mode"})
    promised = () if brought or changes_logits or weights != "model" else card.measured
    capabilities = MECHANISMS[card.attention.mechanism].capabilities
    suffix = "".join(f",{key}={setting_text(overrides[key])}" for key in sorted(overrides))
    if brought:
        suffix += f",checkpoint={checkpoint.stem}"
    if weights != "model":
        suffix += f",weights={weights}"
    size = card.architecture.image_size
    return _classifier(
        network,
        ModelDescription(
            name=card.name + suffix,
            source="card",
            task=card.task,
            family=card.family,
            seed=None if brought else card.seed,
            architecture=card.architecture.model_dump(mode="json"),
            attention=card.attention.mechanism,
            attention_settings=settings,
            attention_overrides=dict(overrides),
            gradient_mode=settings.get("gradient_mode", "detached")
            if capabilities.detached_statistics
            else None,
            measured=promised,
            preprocessing=card.preprocessing,
            mean=card.input.mean,
            std=card.input.std,
            input_shape=(card.architecture.channels, size, size),
            num_classes=card.architecture.num_classes,
            classes=card.classes,
            parameters=_parameters(network),
            checkpoint_file=checkpoint.name,
            checkpoint_sha256=sha256,
            weights=weights,
            weights_sha256=state_sha256(network.state_dict()),
        ),
    )


def _from_timm(name: str, checkpoint: str | Path | None, weights: WeightsKind) -> ImageClassifier:
    if checkpoint is None:
        raise UsageError(
            f"model {name} needs its weights as checkpoint=PATH; nothing is downloaded"
        )
    timm_name = name.removeprefix(PREFIX)
    with torch.random.fork_rng(devices=[]):
        network = build_timm(timm_name).float()
    load_strictly(network, read_checkpoint(checkpoint, weights=weights), f"checkpoint {checkpoint}")
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
            parameters=_parameters(network),
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
    )


def _parameters(network: nn.Module) -> int:
    return sum(each.numel() for each in network.parameters())


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

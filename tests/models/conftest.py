"""A tiny vision transformer's card and checkpoints, and the vectors of the released code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from robustbench_elliptical.models import (
    AttentionChoice,
    Card,
    ImageClassifier,
    InputNormalisation,
    VisionTransformerArchitecture,
    build_network,
    card_to_toml,
    load_model,
)

DEIT_FORMAT = Path(__file__).parents[1] / "data" / "deit_format"
SETTINGS = {
    "softmax": {},
    "elliptical_max": {"scaling": "max"},
    "elliptical_mean": {"scaling": "mean"},
}


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def vectors() -> dict[str, Tensor]:
    return load_file(DEIT_FORMAT / "expected.safetensors")


@pytest.fixture(scope="session")
def vector_checkpoint() -> Path:
    return DEIT_FORMAT / "checkpoint.pth"


@pytest.fixture(scope="session")
def vector_card() -> Callable[..., Card]:
    """A card of the vectors' network: no normalisation, so that inputs go in as they are."""
    config = json.loads((DEIT_FORMAT / "config.json").read_text())

    def make(kind: str = "elliptical_max", **fields) -> Card:
        mechanism = kind.partition("_")[0]
        settings = SETTINGS[kind]
        if settings:
            settings = {**settings, "blocks": config["elliptical_blocks"]}
        values = {
            "name": kind.replace("_", "-"),
            "family": kind,
            "architecture": VisionTransformerArchitecture(
                image_size=config["img_size"],
                patch_size=config["patch_size"],
                embed_dim=config["embed_dim"],
                depth=config["depth"],
                num_heads=config["num_heads"],
                num_classes=config["num_classes"],
            ),
            "attention": AttentionChoice(mechanism=mechanism, settings=settings),
            "input": InputNormalisation(mean=(0, 0, 0), std=(1, 1, 1)),
            **fields,
        }
        return Card(**values)

    return make


@pytest.fixture
def card_file(tmp_path, vector_card) -> Callable[..., Path]:
    """Write such a card; returns its path."""

    def write(kind: str = "elliptical_max", **fields) -> Path:
        card = vector_card(kind, **fields)
        path = tmp_path / f"{card.name}.toml"
        path.write_text(card_to_toml(card), encoding="utf-8")
        return path

    return write


@pytest.fixture
def vector_model(card_file, vector_checkpoint) -> Callable[..., ImageClassifier]:
    def load(kind: str = "elliptical_max", **attention) -> ImageClassifier:
        return load_model(str(vector_checkpoint), card=card_file(kind), attention=attention)

    return load


@pytest.fixture(scope="session")
def tiny_classifier() -> Callable[..., ImageClassifier]:
    """An untrained classifier with large weights, so that its attention is far from uniform."""
    architecture = VisionTransformerArchitecture(
        image_size=16, patch_size=4, embed_dim=24, depth=3, num_heads=3, num_classes=5
    )

    def build(mechanism: str = "elliptical", seed: int = 0, **settings) -> ImageClassifier:
        if mechanism == "elliptical":
            settings.setdefault("scaling", "max")
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            choice = AttentionChoice(mechanism=mechanism, settings=settings)
            network = build_network(architecture, choice).eval()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.add_(torch.randn(parameter.shape) * 0.3)
        return ImageClassifier(
            network,
            input_shape=(3, 16, 16),
            num_classes=5,
            mean=[0.5] * 3,
            std=[0.25] * 3,
            name=f"tiny-{mechanism}",
        ).eval()

    return build


@pytest.fixture(scope="session")
def images() -> Tensor:
    return torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))

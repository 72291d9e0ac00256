"""A tiny vision transformer's card and checkpoints, and the vectors of the released code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.models import (
    AttentionChoice,
    ImageCard,
    ImageClassifier,
    InputNormalisation,
    LanguageCard,
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
def vector_card() -> Callable[..., ImageCard]:
    """A card of the vectors' network: no normalisation, so that inputs go in as they are."""
    config = json.loads((DEIT_FORMAT / "config.json").read_text())

    def make(kind: str = "elliptical_max", **fields) -> ImageCard:
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
        return ImageCard(**values)

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


LM_FORMAT = Path(__file__).parents[1] / "data" / "lm_format"
RELEASED = {"scaling": "max", "metric_scope": "window", "scale": "none"}
CAUSAL = {"scaling": "max", "metric_scope": "prefix", "scale": "sqrt"}


@pytest.fixture(scope="session")
def language_vectors() -> dict[str, Tensor]:
    """Tokens, targets and losses of the released language model, windows first."""
    return {name: each.T for name, each in load_file(LM_FORMAT / "expected.safetensors").items()}


@pytest.fixture(scope="session")
def language_checkpoint() -> Path:
    return LM_FORMAT / "state_dict.safetensors"


@pytest.fixture(scope="session")
def released_module() -> Path:
    return LM_FORMAT / "model.pt"


@pytest.fixture(scope="session")
def words() -> Vocabulary:
    """As many words as the released language model of the vectors has."""
    return Vocabulary([EOS, UNK, *(f"w{number}" for number in range(58))])


@pytest.fixture
def words_file(tmp_path, words) -> Path:
    words.save(tmp_path / "words.txt")
    return tmp_path / "words.txt"


@pytest.fixture(scope="session")
def language_card() -> Callable[..., LanguageCard]:
    """A card of the vectors' language model, without files."""
    config = json.loads((LM_FORMAT / "config.json").read_text())

    def make(settings: dict | None = RELEASED, **fields) -> LanguageCard:
        attention = AttentionChoice(mechanism="softmax")
        if settings is not None:
            attention = AttentionChoice(mechanism="elliptical", settings=settings)
        values = {
            "name": "lm-tiny",
            "family": "lm-tiny",
            "architecture": {
                "vocab_size": config["vocab_size"],
                "layers": config["n_layer"],
                "d_model": config["d_model"],
                "num_heads": config["n_head"],
                "d_head": config["d_head"],
                "d_inner": config["d_inner"],
                "context_length": config["context_length"],
            },
            "attention": attention,
            **fields,
        }
        return LanguageCard(**values)

    return make


@pytest.fixture
def language_card_file(tmp_path, language_card) -> Callable[..., Path]:
    """Write such a card; returns its path."""

    def write(settings: dict | None = RELEASED, **fields) -> Path:
        card = language_card(settings, **fields)
        path = tmp_path / f"{card.name}.toml"
        path.write_text(card_to_toml(card), encoding="utf-8")
        return path

    return write

import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from robustbench_elliptical.cli import main
from robustbench_elliptical.models import (
    AttentionChoice,
    ImageCard,
    InputNormalisation,
    VisionTransformerArchitecture,
    build_network,
    card_to_toml,
)


@pytest.fixture
def elliptical_robust(tmp_path, monkeypatch, capsys):
    """Run the console script's own entry point; returns (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["elliptical-robust", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main.run()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


ARCHITECTURE = VisionTransformerArchitecture(
    image_size=8, patch_size=4, channels=1, embed_dim=8, depth=2, num_heads=2, num_classes=3
)


@pytest.fixture
def card(tmp_path):
    """A tiny model with random weights, as a card file and a checkpoint beside it."""
    choice = AttentionChoice(mechanism="elliptical", settings={"scaling": "max"})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_network(ARCHITECTURE, choice)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    save_file(network.state_dict(), tmp_path / "tiny.safetensors")
    made = ImageCard(
        name="tiny",
        family="tiny",
        architecture=ARCHITECTURE,
        attention=choice,
        input=InputNormalisation(mean=(0.5,), std=(0.5,)),
    )
    path = tmp_path / "tiny.toml"
    path.write_text(card_to_toml(made))
    return path


@pytest.fixture
def tiny(card):
    """The tiny model as `--model` takes it."""
    return f"tiny,card={card},checkpoint={card.with_suffix('.safetensors')}"


@pytest.fixture
def data(tmp_path):
    """Thirty random images of three classes as `--data` takes them."""
    generator = np.random.default_rng(0)
    path = tmp_path / "images.npz"
    images = generator.integers(0, 256, (30, 1, 8, 8), dtype=np.uint8)
    np.savez(path, images=images, labels=np.arange(30) % 3)
    return f"npz:{path}"

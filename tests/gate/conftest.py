import shutil
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from robustbench_elliptical.cli import main
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.gate import freeze, write_baseline
from robustbench_elliptical.models import (
    AttentionChoice,
    ImageCard,
    InputNormalisation,
    VisionTransformerArchitecture,
    build_network,
    card_to_toml,
    load_model,
)
from robustbench_elliptical.reports import render_markdown
from robustbench_elliptical.results import write_results

ARCHITECTURE = VisionTransformerArchitecture(
    image_size=8, patch_size=4, channels=1, embed_dim=8, depth=1, num_heads=2, num_classes=3
)
SAMPLES = 1000


@pytest.fixture
def elliptical_robust(tmp_path, monkeypatch, capsys):
    """Run the console script's own entry point; returns (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["elliptical-robust", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main.run()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    """A folder with a tiny model, data it classifies right, and its damaged and tuned versions."""
    folder = tmp_path_factory.mktemp("planted")
    choice = AttentionChoice(mechanism="softmax")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_network(ARCHITECTURE, choice)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    _save(network.state_dict(), folder / "tiny.safetensors")
    for name, scale in (("damaged", 0.5), ("nudged", 0.002)):
        _save(_disturbed(folder, scale), folder / f"{name}.safetensors")
    _save(load_file(folder / "tiny.safetensors"), folder / "renamed.safetensors")
    for name in ("tiny", "renamed"):
        _write_card(folder, name, choice)
    _write_data(folder)
    _save(_fine_tuned(folder), folder / "tuned.safetensors")
    return folder


def _save(state, path):
    save_file({name: value.contiguous() for name, value in state.items()}, path)


def _disturbed(folder, scale):
    generator = torch.Generator().manual_seed(1)
    state = load_file(folder / "tiny.safetensors")
    return {
        name: value + scale * torch.randn(value.shape, generator=generator)
        for name, value in state.items()
    }


def _fine_tuned(folder):
    """Return the weights after three small steps on the data."""
    model = load_model("tiny", card=folder / "tiny.toml", checkpoint=folder / "tiny.safetensors")
    with np.load(folder / "images.npz") as data:
        images = torch.from_numpy(data["images"]).float() / 255
        labels = torch.from_numpy(data["labels"]).long()
    optimizer = torch.optim.SGD(model.network.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return model.network.state_dict()


def _write_card(folder, name, choice):
    made = ImageCard(
        name=name,
        family=name,
        architecture=ARCHITECTURE,
        attention=choice,
        input=InputNormalisation(mean=(0.5,), std=(0.5,)),
    )
    (folder / f"{name}.toml").write_text(card_to_toml(made))


def _write_data(folder):
    """Write random images with the model's own answers as labels, one in ten wrong."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (SAMPLES, 1, 8, 8), dtype=np.uint8)
    card, weights = folder / "tiny.toml", folder / "tiny.safetensors"
    model = load_model("tiny", card=card, checkpoint=weights)
    with torch.no_grad():
        answers = model(torch.from_numpy(images).float() / 255).argmax(1).numpy()
    wrong = generator.random(SAMPLES) < 0.1
    np.savez(
        folder / "images.npz", images=images, labels=np.where(wrong, (answers + 1) % 3, answers)
    )


def _written(folder, name, card="tiny"):
    return f"{card},card={folder / card}.toml,checkpoint={folder / name}.safetensors"


@pytest.fixture
def words(planted):
    """Return a checkpoint as the command line writes it."""
    return lambda name, card="tiny": _written(planted, name, card)


@pytest.fixture(scope="session")
def evaluated(planted):
    """A run of the tiny model, clean and under two attacks, and its baseline."""
    settings = EvaluationSettings(
        models=(_written(planted, "tiny"),),
        attacks=("fgsm", "pgd:steps=3"),
        epsilons=("2/255",),
        data=(f"npz:{planted / 'images.npz'}",),
        limit=None,
        batch_size=1000,
    )
    evaluation = evaluate(settings)
    write_results(planted / "run", evaluation, render_markdown)
    write_baseline(planted / "baseline.json.gz", freeze(evaluation))
    return planted


@pytest.fixture
def frozen(evaluated, tmp_path):
    """The baseline, a copy to change."""
    return shutil.copy(evaluated / "baseline.json.gz", tmp_path / "baseline.json.gz")

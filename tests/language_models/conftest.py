"""Small decoders, and the vectors of the released language model."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from robustbench_elliptical.models import AttentionChoice, load_strictly
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model

DATA = Path(__file__).parents[1] / "data"
CHOICES = {
    "softmax": AttentionChoice(mechanism="softmax"),
    "elliptical": AttentionChoice(
        mechanism="elliptical",
        settings={"scaling": "max", "metric_scope": "prefix", "scale": "sqrt"},
    ),
    "elliptical-released": AttentionChoice(
        mechanism="elliptical",
        settings={"scaling": "max", "metric_scope": "window", "scale": "none"},
    ),
}


class Vectors(NamedTuple):
    """One folder of the released model's numbers, windows first."""

    folder: Path
    architecture: DecoderArchitecture
    tokens: Tensor
    targets: Tensor
    losses: dict[str, Tensor]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(params=["lm_format", "lm_format_adaptive"])
def vectors(request) -> Vectors:
    folder = DATA / request.param
    config = json.loads((folder / "config.json").read_text())
    expected = load_file(folder / "expected.safetensors")
    architecture = DecoderArchitecture(
        vocab_size=config["vocab_size"],
        layers=config["n_layer"],
        d_model=config["d_model"],
        num_heads=config["n_head"],
        d_head=config["d_head"],
        d_inner=config["d_inner"],
        context_length=config["context_length"],
        cutoffs=config["cutoffs"],
    )
    return Vectors(
        folder,
        architecture,
        expected["inputs"].T,
        expected["targets"].T,
        {
            "softmax": expected["loss_softmax"].T,
            "elliptical-released": expected["loss_elliptical_max"].T,
        },
    )


@pytest.fixture
def released_model(vectors):
    """The vectors' weights under one of `CHOICES`."""

    def make(variant: str):
        model = build_language_model(vectors.architecture, CHOICES[variant]).eval()
        load_strictly(model, load_file(vectors.folder / "state_dict.safetensors"), "the vectors")
        return model

    return make


@pytest.fixture
def small_model():
    """A random model whose weights are large enough to tell words apart, in float64."""

    def make(variant: str = "softmax", **sizes):
        values = {
            "vocab_size": 50,
            "layers": 3,
            "d_model": 16,
            "num_heads": 2,
            "d_head": 6,
            "d_inner": 24,
            "context_length": 12,
            "cutoffs": (10, 25),
        }
        torch.manual_seed(7)
        model = build_language_model(DecoderArchitecture(**{**values, **sizes}), CHOICES[variant])
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3)
            else:
                parameter.data.add_(0.1 * torch.randn_like(parameter))
        return model.double().eval()

    return make


@pytest.fixture
def windows() -> Tensor:
    """Windows of 12 tokens and their next one, shape (3, 13)."""
    return torch.randint(50, (3, 13), generator=torch.Generator().manual_seed(1))

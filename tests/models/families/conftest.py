"""Small networks of the families beside the plain vision transformer, far from their start."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from robustbench_elliptical.models import (
    AttentionChoice,
    DistilledArchitecture,
    FanArchitecture,
    ImageArchitecture,
    ImageCard,
    InputNormalisation,
    RvtArchitecture,
    build_network,
)

_SIZES: dict[str, ImageArchitecture] = {
    "deit-distilled": DistilledArchitecture(
        image_size=32, patch_size=8, embed_dim=24, depth=3, num_heads=3, num_classes=5
    ),
    "rvt": RvtArchitecture(
        image_size=64, head_dim=8, depth=(3, 2), num_heads=(2, 4), num_classes=5
    ),
    "fan": FanArchitecture(
        image_size=32, patch_size=8, embed_dim=24, depth=3, num_heads=3, num_classes=5
    ),
}


def stir(network: nn.Module) -> None:
    """Move parameters and running statistics so far that every part of the network counts."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.3)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(std=0.3)
                module.running_var.uniform_(0.5, 2)


@pytest.fixture(scope="session")
def sizes() -> dict[str, ImageArchitecture]:
    return _SIZES


@pytest.fixture(scope="session")
def stirred() -> Callable[..., nn.Module]:
    """Build a network of a family in float64 and evaluation mode; equal seeds, equal weights."""

    def build(family: str, mechanism: str = "softmax", changes=(), **settings) -> nn.Module:
        if mechanism == "elliptical":
            settings.setdefault("scaling", "max")
        sizes = _SIZES[family].model_copy(update=dict(changes))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            choice = AttentionChoice(mechanism=mechanism, settings=settings)
            network = build_network(sizes, choice)
            stir(network)
        return network.double().eval()

    return build


@pytest.fixture(scope="session")
def pictures() -> Callable[[str], Tensor]:
    """Three normalised images of a family's size, float64."""

    def make(family: str) -> Tensor:
        size = _SIZES[family].image_size
        generator = torch.Generator().manual_seed(1)
        return torch.randn(3, 3, size, size, generator=generator, dtype=torch.float64)

    return make


@pytest.fixture
def family_card() -> Callable[..., ImageCard]:
    def make(family: str, mechanism: str = "softmax", changes=(), **settings) -> ImageCard:
        if mechanism == "elliptical":
            settings.setdefault("scaling", "max")
        return ImageCard(
            name=f"small-{family}",
            family=f"small-{family}",
            architecture=_SIZES[family].model_copy(update=dict(changes)),
            attention=AttentionChoice(mechanism=mechanism, settings=settings),
            input=InputNormalisation(mean=(0.5,) * 3, std=(0.25,) * 3),
        )

    return make

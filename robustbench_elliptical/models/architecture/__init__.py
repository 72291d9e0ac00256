"""Architectures as data: what a card or a recipe states, and the network built from it.

Each family has a schema of its own, which builds its network. A new family is a backbone in
`robustbench_elliptical.models.backbones`, a schema here, and its name in `choosing`.
"""

from robustbench_elliptical.models.architecture.base import AttentionChoice
from robustbench_elliptical.models.architecture.choosing import (
    FAMILIES,
    AnyArchitecture,
    ImageArchitecture,
    build_network,
)
from robustbench_elliptical.models.architecture.fan import FanArchitecture
from robustbench_elliptical.models.architecture.rvt import RvtArchitecture
from robustbench_elliptical.models.architecture.vision_transformer import (
    DistilledArchitecture,
    VisionTransformerArchitecture,
)

__all__ = [
    "FAMILIES",
    "AnyArchitecture",
    "AttentionChoice",
    "DistilledArchitecture",
    "FanArchitecture",
    "ImageArchitecture",
    "RvtArchitecture",
    "VisionTransformerArchitecture",
    "build_network",
]

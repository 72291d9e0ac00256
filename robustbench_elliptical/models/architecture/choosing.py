"""Which schema an architecture on a card has, and the network built from it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator
from torch import nn

from robustbench_elliptical.models.architecture.base import ArchitectureBase, AttentionChoice
from robustbench_elliptical.models.architecture.fan import FanArchitecture
from robustbench_elliptical.models.architecture.rvt import RvtArchitecture
from robustbench_elliptical.models.architecture.vision_transformer import (
    DistilledArchitecture,
    VisionTransformerArchitecture,
)
from robustbench_elliptical.models.single_images import steady_batch_norms

__all__ = ["FAMILIES", "AnyArchitecture", "ImageArchitecture", "build_network"]

ImageArchitecture = (
    VisionTransformerArchitecture | DistilledArchitecture | RvtArchitecture | FanArchitecture
)
"""The architecture of an image classifier of any family."""

_SCHEMAS: dict[str, type[ArchitectureBase]] = {
    "vision-transformer": VisionTransformerArchitecture,
    "deit-distilled": DistilledArchitecture,
    "rvt": RvtArchitecture,
    "fan": FanArchitecture,
}


FAMILIES = tuple(_SCHEMAS)
"""Names of the families, which pick the schema of an image classifier's architecture."""


class _Family(BaseModel):
    """What an architecture says about its schema."""

    family: Literal["vision-transformer", "deit-distilled", "rvt", "fan"] = "vision-transformer"


def _by_family(value: Any) -> Any:
    """Return what a card states as an instance of the schema that its family has."""
    if not isinstance(value, Mapping):
        return value
    return _SCHEMAS[_Family.model_validate(value).family].model_validate(value)


AnyArchitecture = Annotated[ImageArchitecture, BeforeValidator(_by_family)]
"""The same as a field: its schema is that of the stated family, the vision transformer's if there
is none. Messages name the field at fault without the family."""


def build_network(
    architecture: ImageArchitecture,
    attention: AttentionChoice,
    *,
    overrides: Mapping[str, Any] | None = None,
    drop_path: float = 0.0,
) -> nn.Module:
    """Build the network, initialised from torch's global generator.

    Parameters
    ----------
    architecture, attention
        What to build.
    overrides
        Attention settings that replace those of `attention` (controls such as
        ``{"metric": "identity"}``).
    drop_path
        Stochastic depth rate of the last block in training; earlier ones rise linearly to it. In a
        fully attentional network all blocks have it.

    Raises
    ------
    UsageError
        If the mechanism or one of its settings is unknown or out of range.
    """
    settings = {**attention.settings, **(overrides or {})}
    network = architecture.build(attention.mechanism, settings, drop_path)
    steady_batch_norms(network)
    return network

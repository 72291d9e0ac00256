"""Attention mechanisms, one file each, registered by name in `MECHANISMS`.

A new mechanism is a new file here that subclasses `AttentionMechanism` and adds itself to
`MECHANISMS`; import it below.
"""

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    LayerShape,
    Lifted,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.build import build_mechanism
from robustbench_elliptical.models.attention.elliptical import (
    EllipticalAttention,
    EllipticalSettings,
    estimate_metric,
)
from robustbench_elliptical.models.attention.softmax import SoftmaxAttention

__all__ = [
    "MECHANISMS",
    "AttentionMechanism",
    "Capabilities",
    "EllipticalAttention",
    "EllipticalSettings",
    "HeadInputs",
    "LayerShape",
    "Lifted",
    "MechanismSettings",
    "SoftmaxAttention",
    "State",
    "build_mechanism",
    "estimate_metric",
]

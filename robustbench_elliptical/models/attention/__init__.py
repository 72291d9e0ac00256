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
from robustbench_elliptical.models.attention.energy_gated import (
    EnergyGatedAttention,
    EnergyGatedSettings,
)
from robustbench_elliptical.models.attention.flags import (
    FlagNote,
    SettingBehind,
    capabilities_of,
    flag_notes,
    flag_words,
    setting_behind,
)
from robustbench_elliptical.models.attention.forgetting import (
    ForgettingAttention,
    ForgettingSettings,
)
from robustbench_elliptical.models.attention.fourier import FourierAttention, FourierSettings
from robustbench_elliptical.models.attention.gated import GatedAttention, GatedSettings
from robustbench_elliptical.models.attention.gaussian_kernel import KernelSettings
from robustbench_elliptical.models.attention.kde import KernelDensityAttention
from robustbench_elliptical.models.attention.lightning import LightningAttention, LightningSettings
from robustbench_elliptical.models.attention.linformer import LinformerAttention, LinformerSettings
from robustbench_elliptical.models.attention.longformer import (
    LongformerAttention,
    LongformerSettings,
)
from robustbench_elliptical.models.attention.mgk import MixtureKeysAttention, MixtureKeysSettings
from robustbench_elliptical.models.attention.mom import (
    MedianOfMeansAttention,
    MedianOfMeansSettings,
)
from robustbench_elliptical.models.attention.neighborhood import (
    NeighborhoodAttention,
    NeighborhoodSettings,
)
from robustbench_elliptical.models.attention.nystromformer import (
    NystromformerAttention,
    NystromformerSettings,
)
from robustbench_elliptical.models.attention.performer import PerformerAttention, PerformerSettings
from robustbench_elliptical.models.attention.primal import PrimalAttention, PrimalSettings
from robustbench_elliptical.models.attention.reformer import ReformerAttention, ReformerSettings
from robustbench_elliptical.models.attention.rkde import (
    RobustDensityAttention,
    RobustDensitySettings,
)
from robustbench_elliptical.models.attention.rvt_paas import (
    PositionAwareAttention,
    PositionAwareSettings,
)
from robustbench_elliptical.models.attention.shared import (
    AUXILIARY_LOSS,
    AuxiliaryLoss,
    UnliftedAttention,
)
from robustbench_elliptical.models.attention.softmax import SoftmaxAttention
from robustbench_elliptical.models.attention.spkde import (
    ProjectedDensityAttention,
    ProjectedDensitySettings,
)

__all__ = [
    "AUXILIARY_LOSS",
    "MECHANISMS",
    "AttentionMechanism",
    "AuxiliaryLoss",
    "Capabilities",
    "EllipticalAttention",
    "EllipticalSettings",
    "EnergyGatedAttention",
    "EnergyGatedSettings",
    "FlagNote",
    "ForgettingAttention",
    "ForgettingSettings",
    "FourierAttention",
    "FourierSettings",
    "GatedAttention",
    "GatedSettings",
    "HeadInputs",
    "KernelDensityAttention",
    "KernelSettings",
    "LayerShape",
    "Lifted",
    "LightningAttention",
    "LightningSettings",
    "LinformerAttention",
    "LinformerSettings",
    "LongformerAttention",
    "LongformerSettings",
    "MechanismSettings",
    "MedianOfMeansAttention",
    "MedianOfMeansSettings",
    "MixtureKeysAttention",
    "MixtureKeysSettings",
    "NeighborhoodAttention",
    "NeighborhoodSettings",
    "NystromformerAttention",
    "NystromformerSettings",
    "PerformerAttention",
    "PerformerSettings",
    "PositionAwareAttention",
    "PositionAwareSettings",
    "PrimalAttention",
    "PrimalSettings",
    "ProjectedDensityAttention",
    "ProjectedDensitySettings",
    "ReformerAttention",
    "ReformerSettings",
    "RobustDensityAttention",
    "RobustDensitySettings",
    "SettingBehind",
    "SoftmaxAttention",
    "State",
    "UnliftedAttention",
    "build_mechanism",
    "capabilities_of",
    "estimate_metric",
    "flag_notes",
    "flag_words",
    "setting_behind",
]

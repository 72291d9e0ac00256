"""Network bodies that take a registered attention mechanism."""

from robustbench_elliptical.models.backbones.distilled import DistilledVisionTransformer
from robustbench_elliptical.models.backbones.fully_attentional import FullyAttentionalNetwork
from robustbench_elliptical.models.backbones.network import AttentionNetwork, BlockTrace
from robustbench_elliptical.models.backbones.robust_vision_transformer import (
    RobustVisionTransformer,
)
from robustbench_elliptical.models.backbones.vision_transformer import AttentionVisionTransformer

__all__ = [
    "AttentionNetwork",
    "AttentionVisionTransformer",
    "BlockTrace",
    "DistilledVisionTransformer",
    "FullyAttentionalNetwork",
    "RobustVisionTransformer",
]

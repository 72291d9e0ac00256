"""Network bodies that take a registered attention mechanism."""

from robustbench_elliptical.models.backbones.vision_transformer import AttentionVisionTransformer

__all__ = ["AttentionVisionTransformer"]

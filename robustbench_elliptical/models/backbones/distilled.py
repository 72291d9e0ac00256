"""The distilled DeiT (Touvron et al., ICML 2021, arXiv 2012.12877, section 4).

A second token, the distillation token, stands after the class token and has a head of its own,
which learns what a teacher says. The logits are the mean of both heads; timm returns both in
training after ``set_distilled_training(True)``. Names and parameters are timm's
VisionTransformerDistilled's.
"""

from timm.models.deit import VisionTransformerDistilled

from robustbench_elliptical.models.backbones.vision_transformer import AttentionVisionTransformer

__all__ = ["DistilledVisionTransformer"]


class DistilledVisionTransformer(AttentionVisionTransformer, VisionTransformerDistilled):  # type: ignore[misc]  # timm is untyped
    """A distilled vision transformer; arguments are those of `AttentionVisionTransformer`."""

"""Kernel density attention: the baseline of Han et al., NeurIPS 2023 (arXiv 2210.05794).

softmax_j(-c |q_i - k_j|^2) v with c = 1 / sqrt(head_dim) and, in the released code, keys scaled to
length 1. With such keys it is softmax attention on them at twice the usual scale. It has no
parameters, so its state dict is that of plain attention.

Computed from dot products: a difference of squared lengths loses its digits in half precision.
"""

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    LayerShape,
    Lifted,
    State,
)
from robustbench_elliptical.models.attention.gaussian_kernel import (
    KernelSettings,
    coefficient_of,
    kernel_attention,
    kernel_keys,
)

__all__ = ["KernelDensityAttention"]


class KernelDensityAttention(AttentionMechanism):
    """softmax(-c |q - k|^2) v."""

    capabilities = Capabilities()
    Settings = KernelSettings

    def __init__(self, layer: LayerShape, settings: KernelSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Write the Gaussian scores as dot products."""
        normalize = self.options.normalize_keys
        lifted = kernel_attention(
            inputs.query,
            kernel_keys(inputs.key, normalize=normalize),
            inputs.value,
            coefficient_of(self.options.coefficient, inputs.query.shape[-1]),
            unit_keys=normalize,
            causal=inputs.causal,
        )
        return lifted, state


MECHANISMS.add("kde", KernelDensityAttention)

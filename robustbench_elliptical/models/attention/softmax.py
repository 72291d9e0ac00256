"""Plain softmax attention (Vaswani et al. 2017, equation 1)."""

from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    AttentionMechanism,
    Capabilities,
    HeadInputs,
    Lifted,
    MechanismSettings,
    State,
)

__all__ = ["SoftmaxAttention"]


class SoftmaxAttention(AttentionMechanism):
    """softmax(q k^T / sqrt(head_dim)) v."""

    capabilities = Capabilities()
    Settings = MechanismSettings

    def lift(self, inputs: HeadInputs, state: State) -> tuple[Lifted, State]:
        """Return the projections as they are."""
        scale = inputs.query.shape[-1] ** -0.5
        lifted = Lifted(inputs.query, inputs.key, inputs.value, scale, causal=inputs.causal)
        return lifted, state


MECHANISMS.add("softmax", SoftmaxAttention)

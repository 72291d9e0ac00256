"""Primal-Attention (Chen et al., NeurIPS 2023, arXiv 2305.19798, section 3).

Self-attention as a singular value decomposition of its asymmetric kernel, kept in the primal: with
q^, k^ scaled to length 1, e = q^ W_e(X) and r = k^ W_r(X) are the projections on `rank` left and
right singular directions, and the output is a linear map of [e, r]. There is no value path. The
directions depend on the data: W(X) = X_s^T W, with X_s a few evenly spaced input tokens.

What makes it a decomposition is a loss, weight * J^2 with
J = (E |e L|^2 + E |r L|^2) / 2 - tr(W_e(X)^T W_r(X)), which is 0 at a solution (L^2 is the paper's
Lambda). The expectations are over tokens, J is the mean over heads. Each block adds it to the
state's "auxiliary_loss", one number a sample, so no sample's loss depends on its batch; the
released code squares the mean of J over the batch instead. `shared.AuxiliaryLoss` collects it for a
training loop.

X_s sees every token: there is no causal form.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.base import (
    MECHANISMS,
    Capabilities,
    Explicit,
    HeadInputs,
    LayerShape,
    MechanismSettings,
    State,
)
from robustbench_elliptical.models.attention.shared import (
    AUXILIARY_LOSS,
    UnliftedAttention,
    precise,
    project,
    refuse_causal,
    split_heads,
)

__all__ = ["PrimalAttention", "PrimalSettings"]


class PrimalSettings(MechanismSettings):
    """Settings of Primal-Attention, as a card states them."""

    rank: int = Field(default=20, ge=1)
    """Number of singular directions on each side."""
    samples_per_rank: int = Field(default=10, ge=1)
    """W mixes `rank` times this many tokens (at most the number that the model is built for)."""
    loss_weight: float = Field(default=0.01, ge=0)
    """Weight of J^2 in the auxiliary loss."""
    trace: Literal["projected", "released-parameters"] = "projected"
    """The trace in J: of W_e(X)^T W_r(X) (the paper), or of the parameters W_e^T W_r."""

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say that a loss of weight 0 is none."""
        return replace(summary, auxiliary_loss=self.loss_weight > 0)


class _Scores(NamedTuple):
    left: Tensor
    """e, shape (batch, heads, tokens, rank)."""
    right: Tensor
    """r, same shape."""
    left_directions: Tensor
    """W_e(X), shape (batch, heads, head_dim, rank)."""
    right_directions: Tensor
    """W_r(X), same shape."""


class PrimalAttention(UnliftedAttention):
    """out([q^ W_e(X), k^ W_r(X)])."""

    capabilities = Capabilities(causal="no", auxiliary_loss="with-settings", row_stochastic=False)
    Settings = PrimalSettings

    def __init__(self, layer: LayerShape, settings: PrimalSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        if layer.dim != layer.num_heads * layer.head_dim:
            raise UsageError(
                "attention primal splits the input into the heads: the width must be "
                f"{layer.num_heads} heads x {layer.head_dim}, got {layer.dim}; change the sizes"
            )
        sampled = min(settings.rank * settings.samples_per_rank, layer.num_tokens)
        shape = (layer.num_heads, sampled, settings.rank)
        self.left_weight = nn.Parameter(torch.empty(shape))
        self.right_weight = nn.Parameter(torch.empty(shape))
        for head in (*self.left_weight, *self.right_weight):
            nn.init.orthogonal_(head.detach())
        self.root_spectrum = nn.Parameter(torch.rand(layer.num_heads, settings.rank))
        self.out = nn.Linear(2 * settings.rank, layer.head_dim)

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Project on the singular directions, at a cost linear in the number of tokens."""
        refuse_causal("primal", inputs)
        scores = self._scores(inputs)
        both = torch.cat([scores.left, scores.right], dim=-1).to(inputs.value.dtype)
        loss = self.options.loss_weight * self._objective(scores).square()
        if AUXILIARY_LOSS in state:
            loss = loss + state[AUXILIARY_LOSS]
        return project(self.out, both), {**state, AUXILIARY_LOSS: loss}

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Do the same and return as weights the kernel q^ k^T that is decomposed.

        It holds cosines, negative ones too; its rows don't sum to 1, and the output isn't their
        product with the values.
        """
        output, state = self.forward(inputs, state)
        kernel = _unit(inputs.query) @ _unit(inputs.key).transpose(-2, -1)
        return Explicit(output, kernel.to(inputs.value.dtype), state)

    def objective(self, inputs: HeadInputs) -> Tensor:
        """Return J of each sample, shape (batch,)."""
        return self._objective(self._scores(inputs))

    def _scores(self, inputs: HeadInputs) -> _Scores:
        tokens = precise(split_heads(inputs.tokens, self.layer.num_heads))
        count, sampled = tokens.shape[-2], self.left_weight.shape[-2]
        chosen = torch.arange(sampled, device=tokens.device) * (count - 1) // max(sampled - 1, 1)
        with torch.autocast(device_type=tokens.device.type, enabled=False):
            samples = tokens[:, :, chosen].transpose(-2, -1)
            left = samples @ self.left_weight.to(samples.dtype)
            right = samples @ self.right_weight.to(samples.dtype)
            return _Scores(_unit(inputs.query) @ left, _unit(inputs.key) @ right, left, right)

    def _objective(self, scores: _Scores) -> Tensor:
        root = self.root_spectrum.unsqueeze(-2).to(scores.left.dtype)
        left, right = ((each * root).square().sum(dim=-1).mean(dim=-1) for each in scores[:2])
        if self.options.trace == "projected":
            trace = (scores.left_directions * scores.right_directions).sum(dim=(-2, -1))
        else:
            trace = (self.left_weight * self.right_weight).sum(dim=(-2, -1)).to(root.dtype)
        return ((left + right) / 2 - trace).mean(dim=-1)


def _unit(vectors: Tensor) -> Tensor:
    """Scale to length 1 (0 stays 0, with a finite gradient)."""
    vectors = precise(vectors)
    return vectors * vectors.square().sum(dim=-1, keepdim=True).add(1e-12).rsqrt()


MECHANISMS.add("primal", PrimalAttention)

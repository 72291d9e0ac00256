"""Nystromformer (Xiong et al., AAAI 2021, arXiv 2102.03902, section 3).

With landmarks Q', K' (means of m segments of the queries and keys),
F = softmax(q K'^T / sqrt(head_dim)), A = softmax(Q' K'^T / sqrt(head_dim)),
B = softmax(Q' k^T / sqrt(head_dim)), the output is F pinv(A) B v plus a depthwise convolution of v
along the tokens. The pseudo-inverse is iterated:
Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4, from Z = A^T / (|A|_1 |A|_inf).

Differences from the released code. The norms are those of each matrix; the released "original"
start divides by the largest over the whole batch, so that an image's prediction depends on its
batch mates: setting `inverse_start` restores it. Segments differ by at most one token where the
landmarks don't divide the tokens, instead of zeros appended to the input. Rows of F pinv(A) B sum
to 1 only with an exact inverse. Each landmark mixes future tokens in: there is no causal form.
"""

from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as functional
from pydantic import Field, field_validator
from torch import Tensor, nn

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
    UnliftedAttention,
    offsets,
    precise,
    refuse_causal,
)

__all__ = ["NystromformerAttention", "NystromformerSettings", "iterative_inverse"]

InverseStart = Literal["per-matrix", "released-batch-maximum"]


class NystromformerSettings(MechanismSettings):
    """Settings of Nystromformer, as a card states them."""

    landmarks: int = Field(default=64, ge=1)
    """Number of landmarks (32 to 256 in the released Long Range Arena models)."""
    inverse: Literal["iterative", "exact"] = "iterative"
    """The pseudo-inverse: iterated (as published), or by singular values."""
    iterations: int = Field(default=6, ge=1)
    """Steps of the iteration."""
    inverse_start: InverseStart = "per-matrix"
    """Start of the iteration: scaled by each matrix's own norms, or by the largest in the batch
    (the released default; couples the samples of a batch)."""
    few_tokens: Literal["softmax", "approximate"] = "softmax"
    """With no more tokens than landmarks F pinv(A) B is plain softmax attention; whether to compute
    that (as released) or to iterate for it nevertheless."""
    convolution: int = Field(default=35, ge=0)
    """Width of the convolution of the values, odd; 0: none."""

    @field_validator("convolution")
    @classmethod
    def _has_a_middle(cls, width: int) -> int:
        if width and width % 2 == 0:
            raise ValueError("must be odd, or 0 for none")
        return width

    def decide(self, summary: Capabilities) -> Capabilities:
        """Say whether samples share the start of the iteration."""
        coupled = self.inverse == "iterative" and self.inverse_start == "released-batch-maximum"
        return replace(summary, batch_coupled=coupled)


class NystromformerAttention(UnliftedAttention):
    """F pinv(A) B v + conv(v), in float32 at least."""

    capabilities = Capabilities(causal="no", row_stochastic=False, batch_coupled="with-settings")
    Settings = NystromformerSettings

    def __init__(self, layer: LayerShape, settings: NystromformerSettings) -> None:
        super().__init__(layer, settings)
        self.options = settings
        self.convolution: nn.Conv2d | None = None
        if settings.convolution:
            width = settings.convolution
            self.convolution = nn.Conv2d(
                layer.num_heads,
                layer.num_heads,
                (width, 1),
                padding=(width // 2, 0),
                groups=layer.num_heads,
                bias=False,
            )

    def forward(self, inputs: HeadInputs, state: State) -> tuple[Tensor, State]:
        """Attend at a cost linear in the number of tokens."""
        value = precise(inputs.value)
        with torch.autocast(device_type=value.device.type, enabled=False):
            output = value
            for factor in reversed(self._factors(inputs)):
                output = factor @ output
            if self.convolution is not None:
                output = output + functional.conv2d(
                    value,
                    self.convolution.weight.to(value.dtype),
                    padding=self.convolution.padding,
                    groups=self.convolution.groups,
                )
        return output.to(inputs.value.dtype), state

    def explicit(self, inputs: HeadInputs, state: State) -> Explicit:
        """Return as weights what each token's value counts: F pinv(A) B plus the convolution."""
        value = precise(inputs.value)
        with torch.autocast(device_type=value.device.type, enabled=False):
            first, *rest = self._factors(inputs)
            weights = first
            for factor in rest:
                weights = weights @ factor
            if self.convolution is not None:
                weights = weights + self._band(value)
            output = weights @ value
        dtype = inputs.value.dtype
        return Explicit(output.to(dtype), weights.to(dtype), state)

    def _factors(self, inputs: HeadInputs) -> list[Tensor]:
        """Return the matrices whose product acts on the values."""
        refuse_causal("nystromformer", inputs)
        count = inputs.query.shape[-2]
        query = precise(inputs.query) * inputs.query.shape[-1] ** -0.5
        key = precise(inputs.key)
        landmarks = min(self.options.landmarks, count)
        if landmarks == count and self.options.few_tokens == "softmax":
            return [(query @ key.transpose(-2, -1)).softmax(dim=-1)]
        means = _segment_means(count, landmarks).to(query)
        query_landmarks, key_landmarks = means @ query, means @ key
        to_landmarks = (query @ key_landmarks.transpose(-2, -1)).softmax(dim=-1)
        between = (query_landmarks @ key_landmarks.transpose(-2, -1)).softmax(dim=-1)
        from_landmarks = (query_landmarks @ key.transpose(-2, -1)).softmax(dim=-1)
        if self.options.inverse == "exact":
            inverse = torch.linalg.pinv(between)
        else:
            inverse = iterative_inverse(
                between, self.options.iterations, self.options.inverse_start
            )
        return [to_landmarks, inverse, from_landmarks]

    def _band(self, value: Tensor) -> Tensor:
        """Return the convolution as a matrix, shape (heads, tokens, tokens)."""
        assert self.convolution is not None
        kernel = self.convolution.weight.flatten(1).to(value.dtype)
        place = kernel.shape[-1] // 2 - offsets(value.shape[-2], value.device)
        inside = (place >= 0) & (place < kernel.shape[-1])
        return kernel[:, place.clamp(0, kernel.shape[-1] - 1)] * inside


def iterative_inverse(
    matrices: Tensor, iterations: int = 6, start: InverseStart = "per-matrix"
) -> Tensor:
    """Approximate the pseudo-inverses of non-negative matrices, shape (..., m, m).

    Each step roughly cubes the error; 6 leave a few hundredths, 20 rounding.
    """
    columns = matrices.abs().sum(dim=-2).amax(dim=-1)
    rows = matrices.abs().sum(dim=-1).amax(dim=-1)
    if start == "released-batch-maximum":
        columns, rows = columns.max(), rows.max()
    inverse = matrices.transpose(-2, -1) / (columns * rows)[..., None, None]
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    for _ in range(iterations):
        product = matrices @ inverse
        inner = 15 * identity - product @ (7 * identity - product)
        inverse = inverse @ (13 * identity - product @ inner) / 4
    return inverse


def _segment_means(count: int, segments: int) -> Tensor:
    """Return the matrix that takes the means of segments whose lengths differ by at most 1."""
    segment = torch.arange(count) * segments // count
    member = segment == torch.arange(segments).unsqueeze(-1)
    return member / member.sum(dim=-1, keepdim=True).double()


MECHANISMS.add("nystromformer", NystromformerAttention)

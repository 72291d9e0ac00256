"""Measures of what a forward did, one number a sample."""

import torch
import torch.nn.functional as functional
from torch import Tensor

__all__ = ["attention_iou", "class_attention", "token_similarity"]


def token_similarity(tokens: Tensor) -> Tensor:
    """Return the mean cosine of the angle between two different tokens.

    The sum over pairs is the squared length of the sum of the unit vectors, less their own: linear
    in the number of tokens.

    Parameters
    ----------
    tokens
        Shape (batch, tokens, dim); a token of length 0 has cosine 0 with every other one.

    Returns
    -------
    Tensor
        Shape (batch,), float64, in [-1, 1]; 1 for a single token, which differs from none.
    """
    units = functional.normalize(tokens.double(), dim=-1)
    count = units.shape[1]
    if count == 1:
        return units.new_ones(len(units))
    own = units.square().sum(dim=(1, 2))
    return (units.sum(dim=1).square().sum(dim=1) - own) / (count * (count - 1))


def class_attention(weights: Tensor, prefix: int, patches: int) -> Tensor | None:
    """Return the class token's attention to the patches, averaged over heads.

    Parameters
    ----------
    weights
        Shape (batch, heads, queries, keys), the class token first.
    prefix
        Number of tokens before the patches, the class token among them.
    patches
        Number of patches.

    Returns
    -------
    Tensor or None
        Shape (batch, patches), float64, not negative, with sum 1 (0 where nothing is attended);
        None where the weights are no map over patches: of another size, or negative in any head.
    """
    if prefix < 1 or tuple(weights.shape[-2:]) != (prefix + patches,) * 2:
        return None
    if not bool((weights >= 0).all()):
        return None
    attended = weights[:, :, 0, prefix:].double().mean(dim=1)
    total = attended.sum(dim=1, keepdim=True)
    return torch.where(total > 0, attended / total.clamp_min(1e-300), torch.zeros_like(attended))


def attention_iou(first: Tensor, second: Tensor) -> Tensor:
    """Return the Attention-IoU of two maps (Serianni et al., CVPR 2025, arXiv 2503.19846).

    sum(a b) / sum(((a + b) / 2)^2) of maps scaled to sum 1: 1 for equal maps, 0 for disjoint ones.

    Parameters
    ----------
    first, second
        Shape (batch, places), not negative; any scale.

    Returns
    -------
    Tensor
        Shape (batch,), float64, in [0, 1]; 1 where both are 0 everywhere, 0 where one is.
    """
    one, other = first.double(), second.double()
    sums = [each.sum(dim=1, keepdim=True) for each in (one, other)]
    a, b = (each / total.clamp_min(1e-300) for each, total in zip((one, other), sums, strict=True))
    score = (a * b).sum(dim=1) / ((a + b) / 2).square().sum(dim=1).clamp_min(1e-300)
    empty = ((sums[0] == 0) & (sums[1] == 0)).squeeze(1)
    return torch.where(empty, torch.ones_like(score), score)

"""The output distribution: a softmax over all words, or an adaptive one (Grave et al. 2017).

Adaptive: the words before the first cut-off and one column for each tail cluster form the head;
p(word of cluster i) = p(cluster i) p(word | cluster i). As in Transformer-XL with div_val 1, every
word has a vector of full width and cluster i, counted from 1, has the i-th head column from the
end. A tail is computed only for the targets that lie in it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

__all__ = ["AdaptiveSoftmax"]


class AdaptiveSoftmax(nn.Module):
    """Distribution over the words, given the decoder's output.

    Parameters
    ----------
    vocab_size
        Number of words, in falling order of frequency.
    d_model
        Width of the decoder's output.
    cutoffs
        First word of each tail cluster, rising; empty for the plain softmax.
    """

    boundaries: Tensor

    def __init__(self, vocab_size: int, d_model: int, cutoffs: Sequence[int] = ()) -> None:
        super().__init__()
        self.out_layers = nn.ModuleList([nn.Linear(d_model, vocab_size)])
        self.head_size = cutoffs[0] if cutoffs else vocab_size
        self.cutoffs = tuple(cutoffs)
        bounds = (0, *cutoffs, vocab_size)
        self._sizes = [end - start for start, end in pairwise(bounds)]
        self.register_buffer("boundaries", torch.tensor(cutoffs).long(), persistent=False)
        if cutoffs:
            self.cluster_weight = nn.Parameter(torch.zeros(len(cutoffs), d_model))
            self.cluster_bias = nn.Parameter(torch.zeros(len(cutoffs)))

    @property
    def projection(self) -> nn.Linear:
        """One vector and one bias for each word."""
        return cast(nn.Linear, self.out_layers[0])

    def forward(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target, shape (rows,).

        Parameters
        ----------
        hidden
            Shape (rows, d_model).
        targets
            Words, int64, shape (rows,).
        """
        cluster = torch.bucketize(targets, self.boundaries, right=True)
        columns = self.head_size + len(self.cutoffs) - cluster
        columns = torch.where(cluster == 0, targets, columns)
        head, *tails = self._scores()
        losses = functional.cross_entropy(head(hidden), columns, reduction="none")
        for index, (tail, start) in enumerate(zip(tails, self.cutoffs, strict=True), start=1):
            rows = (cluster == index).nonzero().squeeze(1)
            if len(rows):
                inside = functional.cross_entropy(
                    tail(hidden[rows]), targets[rows] - start, reduction="none"
                )
                losses = losses.index_add(0, rows, inside)
        return losses

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Return the whole distribution, shape (..., vocab_size), of hidden (..., d_model)."""
        head, *tails = self._scores()
        first = head(hidden).log_softmax(dim=-1)
        parts = [first[..., : self.head_size]]
        for index, tail in enumerate(tails, start=1):
            inside = tail(hidden).log_softmax(dim=-1)
            parts.append(first[..., -index].unsqueeze(-1) + inside)
        return torch.cat(parts, dim=-1)

    def _scores(self) -> list[Callable[[Tensor], Tensor]]:
        """Return the linear layers of the head and of each tail."""
        # One split: a slice for each would fill a whole gradient for each.
        weights = list(torch.split(self.projection.weight, self._sizes))
        biases = list(torch.split(self.projection.bias, self._sizes))
        if self.cutoffs:
            weights[0] = torch.cat((weights[0], self.cluster_weight))
            biases[0] = torch.cat((biases[0], self.cluster_bias))
        return [
            partial(functional.linear, weight=weight, bias=bias)
            for weight, bias in zip(weights, biases, strict=True)
        ]

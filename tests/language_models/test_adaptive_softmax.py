from itertools import pairwise

import pytest
import torch
from torch import nn

from robustbench_elliptical.models.language.adaptive_softmax import AdaptiveSoftmax

VOCABULARY, WIDTH = 30, 8


def make(cutoffs):
    torch.manual_seed(3)
    softmax = AdaptiveSoftmax(VOCABULARY, WIDTH, cutoffs).double()
    for parameter in softmax.parameters():
        nn.init.normal_(parameter)
    return softmax, torch.randn(40, WIDTH, dtype=torch.float64), torch.arange(40) % VOCABULARY


def dense_probabilities(softmax, hidden, cutoffs):
    """The distribution word by word, from the definition."""
    weight, bias = softmax.projection.weight, softmax.projection.bias
    scores = (hidden @ weight.T + bias).exp()
    if not cutoffs:
        return scores / scores.sum(1, keepdim=True)
    # Cluster i has the i-th column from the end, so the first cluster has the last row.
    clusters = (hidden @ softmax.cluster_weight.T + softmax.cluster_bias).exp().flip(1)
    total = scores[:, : cutoffs[0]].sum(1) + clusters.sum(1)
    columns = []
    for word in range(VOCABULARY):
        cluster = sum(word >= each for each in cutoffs)
        if cluster == 0:
            columns.append(scores[:, word] / total)
            continue
        start, end = (*cutoffs, VOCABULARY)[cluster - 1 : cluster + 1]
        inside = scores[:, word] / scores[:, start:end].sum(1)
        columns.append(clusters[:, cluster - 1] / total * inside)
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("cutoffs", [(), (5,), (5, 6, 20), (1, 29)])
def test_equals_the_definition(cutoffs):
    softmax, hidden, targets = make(cutoffs)
    expected = dense_probabilities(softmax, hidden, cutoffs)
    actual = softmax.log_probabilities(hidden)
    assert torch.allclose(actual.exp(), expected, atol=1e-12)
    assert torch.allclose(actual.exp().sum(-1), torch.ones(40).double(), atol=1e-12)
    rows = torch.arange(40)
    assert torch.allclose(softmax(hidden, targets), -expected[rows, targets].log(), atol=1e-12)


def test_equals_torch_where_the_two_coincide():
    """torch's has no bias in the tails and puts the first cluster first."""
    cutoffs = (5, 12, 20)
    softmax, hidden, targets = make(cutoffs)
    peer = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, VOCABULARY, cutoffs, div_value=1, head_bias=True)
    peer = peer.double()
    with torch.no_grad():
        softmax.projection.bias[cutoffs[0] :] = 0
        weight, bias = softmax.projection.weight, softmax.projection.bias
        head = torch.cat((weight[: cutoffs[0]], softmax.cluster_weight.flip(0)))
        peer.head.weight.copy_(head)
        peer.head.bias.copy_(torch.cat((bias[: cutoffs[0]], softmax.cluster_bias.flip(0))))
        bounds = pairwise((*cutoffs, VOCABULARY))
        for (start, end), tail in zip(bounds, peer.tail, strict=True):
            tail[0].weight.copy_(torch.eye(WIDTH))
            tail[1].weight.copy_(weight[start:end])
        assert torch.allclose(softmax.log_probabilities(hidden), peer.log_prob(hidden))
        assert torch.allclose(softmax(hidden, targets), -peer(hidden, targets).output)


@pytest.mark.parametrize("cutoffs", [(), (5, 12)])
def test_gradients_are_those_of_the_whole_distribution(cutoffs):
    softmax, hidden, targets = make(cutoffs)
    hidden.requires_grad_()
    leaves = [hidden, *softmax.parameters()]
    actual = torch.autograd.grad(softmax(hidden, targets).sum(), leaves)
    whole = softmax.log_probabilities(hidden).gather(1, targets[:, None])
    expected = torch.autograd.grad(-whole.sum(), leaves)
    for one, other in zip(actual, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


def test_no_targets_no_losses():
    softmax, hidden, targets = make((5, 12))
    assert softmax(hidden[:0], targets[:0]).shape == (0,)

from itertools import pairwise

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.perplexity import sequence_losses
from robustbench_elliptical.models.language import BigramModel

WORDS = 7
TEXT = np.array([0, 1, 2, 1, 2, 3, 0, 1, 2, 4, 0, 1, 4, 4, 0, 2], dtype=np.int64)


@pytest.fixture
def model():
    return BigramModel.count(TEXT, WORDS)


def by_hand(before, after):
    """The formula of the docstring, pair by pair."""
    pairs = list(pairwise(TEXT.tolist()))
    kinds = sorted(set(pairs))
    once, twice = (sum(pairs.count(kind) == n for kind in kinds) for n in (1, 2))
    discount = once / (once + 2 * twice)
    lower = 0.999 * sum(kind[1] == after for kind in kinds) / len(kinds) + 0.001 / WORDS
    total = sum(pair[0] == before for pair in pairs)
    if not total:
        return lower
    followers = sum(kind[0] == before for kind in kinds)
    seen = pairs.count((before, after))
    return max(seen - discount, 0) / total + discount * followers / total * lower


def test_every_probability_is_the_formulas(model):
    found = model.log_probabilities(torch.arange(WORDS)).exp()
    wanted = [[by_hand(before, after) for after in range(WORDS)] for before in range(WORDS)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_every_context_sums_to_one_the_unseen_one_too(model):
    sums = model.log_probabilities(torch.arange(WORDS)).exp().sum(-1)
    torch.testing.assert_close(sums, torch.ones(WORDS, dtype=torch.double), rtol=0, atol=1e-12)


def test_losses_depend_on_the_last_token_alone(model):
    tokens = torch.tensor([[5, 0, 1], [3, 4, 1]])
    targets = torch.tensor([[0, 1, 2], [4, 1, 2]])
    losses = model.token_losses(tokens, targets)
    assert losses[0, 2] == losses[1, 2] == pytest.approx(-np.log(by_hand(1, 2)))
    torch.testing.assert_close(model.token_losses(tokens, targets, [2]), losses[:, 2:])


@pytest.mark.parametrize(("window", "stride"), [(15, 15), (4, 4), (4, 3), (5, 1), (1, 1)])
def test_neither_window_nor_stride_changes_a_loss(model, window, stride):
    options = {"window": window, "stride": stride, "batch_size": 2}
    (found,) = sequence_losses(model, [TEXT], **options)
    wanted = [-np.log(by_hand(*pair)) for pair in pairwise(TEXT.tolist())]
    np.testing.assert_allclose(found.losses, wanted, rtol=1e-12)


def test_a_text_whose_pairs_all_recur_is_discounted_by_a_half():
    model = BigramModel.count(np.array([0, 1, 0, 1, 0]), 2)
    found = model.log_probabilities(torch.tensor(0)).exp()
    torch.testing.assert_close(found, torch.tensor([0.125, 0.875], dtype=torch.double))


def test_counts_that_are_replaced_are_forgotten(model):
    words = torch.arange(WORDS)
    model.log_probabilities(words)
    other = BigramModel.count(TEXT[::-1].copy(), WORDS)
    assert len(other.counts) == len(model.counts)
    model.load_state_dict(other.state_dict())
    assert torch.equal(model.log_probabilities(words), other.log_probabilities(words))


def test_a_file_gives_the_same_model(model):
    other = BigramModel(WORDS, len(model.counts))
    other.load_state_dict(load(save(model.state_dict())))
    other.check("file")
    words = torch.arange(WORDS)
    assert torch.equal(other.log_probabilities(words), model.log_probabilities(words))


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [("second", 0, 7), ("second", 1, 1), ("first", 0, -1), ("first", 0, 6), ("counts", 2, 0)],
)
def test_broken_counts_are_refused(model, name, index, value):
    getattr(model, name)[index] = value
    with pytest.raises(UsageError, match="fetch the file again"):
        model.check("checkpoint x")


@pytest.mark.parametrize("tokens", [[1], [1, 7], [-1, 2]])
def test_bad_text(tokens):
    with pytest.raises(UsageError):
        BigramModel.count(np.array(tokens), WORDS)

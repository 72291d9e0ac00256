import math

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.perplexity import loss_gradient, sequence_losses, windows
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model
from robustbench_elliptical.results.perplexity import perplexity

ELLIPTICAL = {"scaling": "max", "metric_scope": "window", "scale": "none"}


def scored(found):
    return [(each.start, each.stop, each.start + each.first) for each in found]


def test_windows_by_hand():
    assert scored(windows(7, 4, 1)) == [(0, 4, 0), (1, 5, 4), (2, 6, 5), (3, 7, 6)]
    assert scored(windows(9, 4, 3)) == [(0, 4, 0), (3, 7, 4), (6, 9, 7)]
    assert scored(windows(9, 4, 4)) == [(0, 4, 0), (4, 8, 4), (8, 9, 8)]
    assert scored(windows(3, 4, 2)) == [(0, 3, 0)]
    assert scored(windows(4, 4, 1)) == [(0, 4, 0)]


@pytest.mark.parametrize("length", range(1, 30))
@pytest.mark.parametrize(("window", "stride"), [(5, 1), (5, 3), (5, 5), (8, 4), (1, 1)])
def test_every_target_is_scored_once_and_sees_enough(length, window, stride):
    seen = [
        (target, target - each.start)
        for each in windows(length, window, stride)
        for target in range(each.start + each.first, each.stop)
    ]
    assert [target for target, _ in seen] == list(range(length))
    assert all(before >= window - stride for target, before in seen if target >= window)


@pytest.mark.parametrize("stride", [0, -1, 5])
def test_a_stride_that_skips_targets_is_refused(stride):
    with pytest.raises(UsageError, match="stride must be at least 1 and at most the window of 4"):
        list(windows(9, 4, stride))


def test_uniform_logits_give_exactly_the_vocabulary(table):
    words = 11
    scorer = table(np.full((words, words), -math.log(words)))
    text = np.arange(40) % words
    found = sequence_losses(scorer, [text], window=6, stride=2, batch_size=4)[0]
    assert perplexity(found.losses.sum(), len(found.losses)) == pytest.approx(words, rel=1e-12)


def test_unigram_and_bigram_tables_have_their_known_perplexity(table):
    unigram = np.array([0.5, 0.25, 0.25])
    text = np.array([0, 0, 0, 1, 2])  # targets 0 0 1 2: 2 + 2 * 2 bits over 4 targets
    scorer = table(np.log(np.tile(unigram, (3, 1))))
    found = sequence_losses(scorer, [text], window=2, stride=1, batch_size=3)[0]
    assert perplexity(found.losses.sum(), 4) == pytest.approx(2**1.5)
    bigram = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        scorer = table(np.log(bigram))
    found = sequence_losses(scorer, [np.array([0, 1, 2, 0, 0])], window=3, stride=2, batch_size=1)[
        0
    ]
    assert perplexity(found.losses.sum(), 4) == pytest.approx(4 ** (1 / 4))  # 1/2, 1, 1, 1/2


def test_the_windows_that_a_model_reads(distance):
    text = np.arange(10)
    for stride, wanted, first in (
        (1, [1, 2, 3, 4, 4, 4, 4, 4, 4], [(0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8)]),
        (3, [1, 2, 3, 4, 2, 3, 4, 2, 3], [(0, 3), (3, 6), (6, 8)]),
        (4, [1, 2, 3, 4, 1, 2, 3, 4, 1], [(0, 3), (4, 7), (8, 8)]),
    ):
        distance.windows.clear()
        found = sequence_losses(distance, [text], window=4, stride=stride, batch_size=2)[0]
        assert found.losses.tolist() == wanted
        assert sorted(distance.windows) == first
        assert found.forwards == len(first)


def build(mechanism="elliptical", settings=ELLIPTICAL, cutoffs=(), dtype=torch.float32):
    torch.manual_seed(0)
    architecture = DecoderArchitecture(
        vocab_size=23,
        layers=3,
        d_model=8,
        num_heads=2,
        d_head=4,
        d_inner=16,
        context_length=8,
        cutoffs=cutoffs,
    )
    choice = AttentionChoice(mechanism=mechanism, settings=settings)
    model = build_language_model(architecture, choice)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.to(dtype).eval()


def plain_loop(model, text, window, stride):
    """One window at a time, every position's distribution, no batch."""
    losses = {}
    inputs, targets = torch.from_numpy(text[:-1]), torch.from_numpy(text[1:])
    for start in range(0, len(inputs), stride):
        stop = min(start + window, len(inputs))
        with torch.no_grad():
            hidden = model(inputs[None, start:stop])
            every = -model.log_probabilities(hidden)[0]
        for place in range(start, stop):
            losses.setdefault(place, every[place - start, targets[place]].item())
        if stop == len(inputs):
            break
    return np.array([losses[place] for place in range(len(inputs))])


@pytest.mark.parametrize("cutoffs", [(), (5, 12)])
@pytest.mark.parametrize(("mechanism", "settings"), [("softmax", {}), ("elliptical", ELLIPTICAL)])
@pytest.mark.parametrize("stride", [1, 3, 8])
def test_it_equals_the_plain_loop_at_any_batch_size(cutoffs, mechanism, settings, stride):
    model = build(mechanism, settings, cutoffs)
    rng = np.random.default_rng(stride)
    texts = [rng.integers(0, 23, size=size) for size in (31, 2, 9, 24)]
    for batch_size in (1, 4, 64):
        found = sequence_losses(model, texts, window=8, stride=stride, batch_size=batch_size)
        for text, each in zip(texts, found, strict=True):
            wanted = plain_loop(model, text, 8, stride)
            assert each.losses.shape == (len(text) - 1,)
            np.testing.assert_allclose(each.losses, wanted, rtol=1e-5)
            assert each.losses.sum() == pytest.approx(wanted.sum(), rel=1e-6)


def test_memory_is_bounded_by_the_batch_size(table):
    scorer = table(np.full((5, 5), -math.log(5)))
    sequence_losses(scorer, [np.zeros(5000, int)] * 2, window=10, stride=1, batch_size=7)
    assert max(rows for rows, _ in scorer.batches) == 7
    assert max(length for _, length in scorer.batches) == 10


def test_not_finite_losses_stay_what_they_are(table):
    probabilities = np.full((3, 3), -math.log(3))
    probabilities[1, 2] = math.nan
    scorer = table(probabilities)
    found = sequence_losses(scorer, [np.array([0, 1, 2, 0])], window=4, stride=4, batch_size=1)[0]
    assert np.isnan(found.losses).tolist() == [False, True, False]


def test_a_batch_of_no_windows_is_refused(table):
    with pytest.raises(UsageError, match="batch_size must be at least 1, got 0"):
        sequence_losses(
            table(np.zeros((2, 2))), [np.zeros(9, int)], window=2, stride=1, batch_size=0
        )


@pytest.mark.parametrize("text", [[], [1]])
def test_a_text_without_a_target_is_refused(table, text):
    with pytest.raises(UsageError, match="at least one word to predict"):
        sequence_losses(
            table(np.zeros((2, 2))), [np.array(text, int)], window=2, stride=1, batch_size=1
        )


# The traps that other tools fell into, one by one.


def test_a_mean_of_perplexities_is_not_the_perplexity(table):
    with np.errstate(divide="ignore"):
        scorer = table(np.log([[0.5, 0.5], [0.01, 0.99]]))
    texts = [np.array([0, 0]), np.array([1, 0]), np.zeros(50, int)]
    found = sequence_losses(scorer, texts, window=8, stride=8, batch_size=8)
    loss = sum(each.losses.sum() for each in found)
    targets = sum(len(each.losses) for each in found)
    pooled = perplexity(loss, targets)
    averaged = np.mean([np.exp(each.losses.mean()) for each in found])
    assert pooled == pytest.approx(math.exp((50 * math.log(2) + math.log(100)) / 51))
    assert averaged == pytest.approx((2 + 100 + 2) / 3)


def test_nothing_is_cut_off_and_targets_are_the_next_tokens(table):
    log_probabilities = np.log(np.random.default_rng(0).dirichlet(np.ones(9), size=9))
    text = np.random.default_rng(1).integers(0, 9, size=257)
    found = sequence_losses(table(log_probabilities), [text], window=16, stride=5, batch_size=3)[0]
    np.testing.assert_allclose(found.losses, -log_probabilities[text[:-1], text[1:]])


@pytest.mark.parametrize("count", [1, 18, 20])
def test_weights_must_be_one_for_each_target(count):
    with pytest.raises(UsageError, match="weights must be one for each of the 19 targets"):
        loss_gradient(build(), np.arange(20), np.ones(count), window=8, stride=3, batch_size=2)


def test_a_text_that_can_not_be_written_to_is_read():
    text = np.arange(20)
    text.setflags(write=False)
    options = {"window": 8, "stride": 3, "batch_size": 2}
    found = loss_gradient(build(), text, np.ones(19), **options)
    assert found.losses.tolist() == sequence_losses(build(), [text], **options)[0].losses.tolist()


@pytest.mark.parametrize("stride", [2, 8])
def test_the_gradient_is_that_of_finite_differences(stride):
    model = build(dtype=torch.double)
    rng = np.random.default_rng(3)
    text, weights = rng.integers(0, 23, size=14), rng.uniform(size=13)
    options = {"window": 8, "stride": stride, "batch_size": 2}
    for mechanism in model.mechanisms():
        mechanism.gradient_mode = "through"
    found = loss_gradient(model, text, weights, **options)
    assert all(parameter.grad is None for parameter in model.parameters())
    plain = sequence_losses(model, [text], **options)[0]
    np.testing.assert_allclose(found.losses, plain.losses, rtol=1e-12)
    assert found.forwards == plain.forwards
    embed = model.embed

    def total(place, change):
        """The weighted loss when one input's vector is moved, in every window that reads it."""
        marked = np.array(text)
        marked[place] = 23 + text[place]

        def moved(tokens):
            vectors = embed(tokens % 23)
            return torch.where((tokens >= 23)[..., None], vectors + change, vectors)

        model.embed = moved
        inputs, targets = torch.from_numpy(marked[:-1]), torch.from_numpy(text[1:])
        loss = 0.0
        with torch.no_grad():
            for each in windows(13, 8, stride):
                rows = slice(each.start, each.stop)
                hidden = model.forward_embeddings(moved(inputs[None, rows]))
                losses = model.hidden_losses(hidden, targets[None, rows])[0, each.first :]
                loss += float((losses.numpy() * weights[each.start + each.first : each.stop]).sum())
        return loss

    for place in (0, 5, 12):
        change = torch.randn(8, dtype=torch.double, generator=torch.Generator().manual_seed(place))
        slope = (total(place, 1e-5 * change) - total(place, -1e-5 * change)) / 2e-5
        assert found.gradient[place] @ change.numpy() == pytest.approx(slope, rel=1e-6, abs=1e-8)

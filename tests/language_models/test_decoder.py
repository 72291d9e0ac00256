import math

import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import AttentionChoice
from robustbench_elliptical.models.attention import Capabilities, SoftmaxAttention
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model
from robustbench_elliptical.models.language.embedding import SinusoidalPositions

VARIANTS = ["softmax", "elliptical", "elliptical-released"]


def changes_before(model, tokens, place):
    """How much the losses before `place` move when every token from there on is another one."""
    changed = tokens.clone()
    changed[:, place:] = (changed[:, place:] + 11) % model.vocab_size
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    with torch.no_grad():
        # The targets stay: what is measured is what the model saw.
        one = model.token_losses(inputs, targets)
        other = model.token_losses(changed[:, :-1], targets)
    return (one - other)[:, :place].abs().max()


@pytest.mark.parametrize("variant", ["softmax", "elliptical"])
@pytest.mark.parametrize("place", [1, 6, 11])
def test_causal_variants_leak_exactly_nothing(variant, place, small_model, windows):
    assert changes_before(small_model(variant), windows, place) == 0


def test_the_released_variant_sees_the_future(small_model, windows):
    assert changes_before(small_model("elliptical-released"), windows, 6) > 1e-3


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("cutoffs", [(), (10, 25)])
@pytest.mark.parametrize("positions", [[11], [-1], [3, 0, 7], torch.tensor([5, 6])])
def test_scored_positions_are_those_of_the_full_computation(
    variant, cutoffs, positions, small_model, windows
):
    model = small_model(variant, cutoffs=cutoffs)
    inputs, targets = windows[:, :-1], windows[:, 1:]
    whole = model.token_losses(inputs, targets)
    assert whole.shape == (3, 12)
    some = model.token_losses(inputs, targets, positions)
    assert torch.allclose(some, whole[:, positions], rtol=1e-12, atol=0)
    hidden = model(inputs, torch.as_tensor(positions))
    assert torch.allclose(hidden, model(inputs)[:, positions], rtol=1e-10)


def test_only_the_scored_positions_reach_the_output_and_the_last_feed_forward(small_model, windows):
    model = small_model()
    shapes = []
    for module in (model.layers[1].pos_ff, model.layers[2].pos_ff, model.crit):
        module.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape)))
    model.token_losses(windows[:, :-1], windows[:, 1:], [11])
    assert shapes == [(3, 12, 16), (3, 1, 16), (3, 16)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_are_those_of_the_whole_distribution(variant, small_model, windows):
    model = small_model(variant)
    inputs, targets = windows[:, :-1], windows[:, 1:]
    whole = model.log_probabilities(model(inputs))
    assert whole.shape == (3, 12, 50)
    assert torch.allclose(whole.exp().sum(-1), torch.ones(3, 12).double())
    picked = -whole.gather(2, targets[..., None]).squeeze(2)
    assert torch.allclose(picked, model.token_losses(inputs, targets))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_window_does_not_depend_on_its_batch(variant, small_model, windows):
    model = small_model(variant)
    together = model(windows[:, :-1])
    for row in range(3):
        assert torch.allclose(model(windows[row : row + 1, :-1]), together[row], rtol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_explicit_path_agrees_and_its_weights_are_causal(variant, small_model, windows):
    model = small_model(variant)
    hidden, blocks = model.trace(windows[:, :-1])
    assert torch.allclose(hidden, model(windows[:, :-1]), rtol=1e-10)
    assert [block.weights.shape for block in blocks] == [(3, 2, 12, 12)] * 3
    for block in blocks:
        assert torch.equal(block.weights, block.weights.tril())
        assert torch.allclose(block.weights.sum(-1), torch.ones(3, 2, 12).double())
    assert ("metric" in blocks[1].state) == (variant != "softmax")


@pytest.mark.parametrize("variant", VARIANTS)
def test_embedding_gradients_equal_finite_differences(variant, small_model, windows):
    model = small_model(variant)
    model.set_gradient_mode("through")
    inputs, targets = windows[:1, :-1], windows[:1, 1:]
    embeddings = model.embed(inputs).detach().requires_grad_()

    def loss(vectors):
        return model.hidden_losses(model.forward_embeddings(vectors), targets).sum()

    (gradient,) = torch.autograd.grad(loss(embeddings), embeddings)
    step = 1e-6
    for place, coordinate in [(0, 0), (5, 3), (11, 15)]:
        nudge = torch.zeros_like(embeddings)
        nudge[0, place, coordinate] = step
        with torch.no_grad():
            slope = (loss(embeddings + nudge) - loss(embeddings - nudge)) / (2 * step)
        assert math.isclose(slope, gradient[0, place, coordinate], rel_tol=1e-4, abs_tol=1e-7)


def test_word_vectors_are_what_the_decoder_starts_from(small_model, windows):
    model = small_model()
    assert torch.equal(model.word_vectors[windows], model.embed(windows))
    assert model.crit.projection.weight is model.word_emb.weight
    assert torch.equal(model.embed(windows), model.word_emb.weight[windows] * 4)  # sqrt(16)


def test_positions_count_from_the_end_of_the_window():
    positions = SinusoidalPositions(6).double()
    vectors = positions(5)
    for place in range(5):
        angles = [(4 - place) / 10000 ** (2 * pair / 6) for pair in range(3)]
        expected = [*map(math.sin, angles), *map(math.cos, angles)]
        assert torch.allclose(vectors[place], torch.tensor(expected).double(), atol=1e-6)
    assert torch.equal(positions(9)[-5:], vectors)


def sizes(**changes):
    return {
        "vocab_size": 20,
        "layers": 2,
        "d_model": 8,
        "num_heads": 2,
        "d_head": 4,
        "d_inner": 8,
        "context_length": 4,
        **changes,
    }


@pytest.mark.parametrize("left_out", ["metric_scope", "scale"])
def test_what_no_checkpoint_tells_must_be_stated(left_out):
    settings = {"scaling": "max", "metric_scope": "prefix", "scale": "sqrt"}
    architecture = DecoderArchitecture(**sizes())
    assert build_language_model(
        architecture, AttentionChoice(mechanism="elliptical", settings=settings)
    )
    value = settings.pop(left_out)
    bare = AttentionChoice(mechanism="elliptical", settings=settings)
    with pytest.raises(UsageError, match=f"must state {left_out} "):
        build_language_model(architecture, bare)
    assert build_language_model(architecture, bare, overrides={left_out: value})


def test_a_mechanism_without_causal_form_is_refused(monkeypatch):
    monkeypatch.setattr(SoftmaxAttention, "capabilities", Capabilities(causal="no"))
    with pytest.raises(UsageError, match="softmax has no causal form"):
        build_language_model(DecoderArchitecture(**sizes()), AttentionChoice(mechanism="softmax"))


@pytest.mark.parametrize("cutoffs", [(0,), (5, 5), (9, 4), (20,), (5, 21)])
def test_cutoffs_must_rise_within_the_vocabulary(cutoffs):
    with pytest.raises(ValueError, match="cutoffs must rise from 1 to at most 19"):
        DecoderArchitecture(**sizes(cutoffs=cutoffs))


def test_dropout_acts_in_training_only(windows):
    model = build_language_model(
        DecoderArchitecture(**sizes(vocab_size=50, dropout=0.5)),
        AttentionChoice(mechanism="softmax"),
    )
    assert not torch.equal(model(windows), model(windows))
    model.eval()
    assert torch.equal(model(windows), model(windows))

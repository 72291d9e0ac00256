"""What the networks of every family promise."""

import pytest
import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.models.attention import MECHANISMS, AuxiliaryLoss

FAMILIES = ["deit-distilled", "rvt", "fan"]
SETTINGS = {"neighborhood": {"kernel": 3, "prefix_tokens": 0}}
# What softmax can't see: it adds the same to every logit.
IDLE = {"fan": ("mlp.q.bias", "attn.k.bias")}
KEYS = torch.tensor([3, 1, 4])


@pytest.mark.parametrize("family", FAMILIES)
def test_elliptical_with_the_identity_metric_is_softmax(family, stirred, pictures):
    images = pictures(family)
    plain = stirred(family)(images)
    assert plain.shape == (3, 5)
    identity = stirred(family, "elliptical", metric="identity")(images)
    assert torch.allclose(identity, plain, rtol=0, atol=1e-9)
    estimated = stirred(family, "elliptical")(images)
    assert (estimated - plain).abs().amax(dim=1).min() > 1e-3
    assert torch.equal(stirred(family, "elliptical", blocks=[])(images), plain)


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
@pytest.mark.parametrize("family", ["rvt", "fan"])
def test_every_mechanism_serves(family, mechanism, stirred, pictures):
    """Alone as in a batch, by the explicit path as by the fused one, with a gradient."""
    network = stirred(family, mechanism, **SETTINGS.get(mechanism, {}))
    images = pictures(family).requires_grad_()
    logits = network(images, KEYS)
    alone = torch.cat([network(images[i : i + 1], KEYS[i : i + 1]) for i in range(3)])
    assert torch.allclose(alone, logits, rtol=0, atol=1e-10)
    traced, blocks = network.trace(images, KEYS)
    assert torch.allclose(traced, logits, rtol=0, atol=1e-9)
    assert torch.isfinite(blocks[-1].weights).all()
    gradient = torch.autograd.grad(logits.sum(), images)[0]
    assert torch.isfinite(gradient).all()
    assert (gradient.abs().amax(dim=(1, 2, 3)) > 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_is_right(family, stirred, pictures):
    """A step along the image changes the loss by what the gradient says."""
    network = stirred(family, "elliptical", gradient_mode="through")
    images = pictures(family)[:1].requires_grad_()
    gradient = torch.autograd.grad(network(images)[0, 1], images)[0]
    along = torch.randn(images.shape, generator=torch.Generator().manual_seed(2)).double()
    step = 1e-6
    with torch.no_grad():
        moved = [network(images + sign * step * along)[0, 1] for sign in (1, -1)]
    measured = (moved[0] - moved[1]) / (2 * step)
    assert measured == pytest.approx(float((gradient * along).sum()), rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_counts(family, stirred, pictures):
    """No tensor of a checkpoint is without effect, but those that can't have any."""
    network = stirred(family)
    network(pictures(family)).square().sum().backward()
    idle = [
        name
        for name, each in network.named_parameters()
        if each.grad is None or not each.grad.abs().max() > 1e-12
    ]
    assert [name for name in idle if not name.endswith(IDLE.get(family, ("-",)))] == []


def test_shapes_of_a_trace(stirred, pictures):
    logits, blocks = stirred("rvt", "elliptical").trace(pictures("rvt"))
    assert logits.shape == (3, 5)
    assert [each.weights.shape for each in blocks] == [(3, 2, 16, 16)] * 3 + [(3, 4, 4, 4)] * 2
    assert [each.tokens.shape for each in blocks] == [(3, 16, 16)] * 3 + [(3, 4, 32)] * 2
    # The first block of either stage has no previous values of its shape.
    assert ["metric" in each.state for each in blocks] == [False, True, True, False, True]
    _, blocks = stirred("fan", "elliptical").trace(pictures("fan"))
    assert [each.weights.shape for each in blocks] == [(3, 3, 16, 16)] * 3
    assert ["metric" in each.state for each in blocks] == [False, True, True]
    _, blocks = stirred("deit-distilled", "elliptical").trace(pictures("deit-distilled"))
    assert [each.weights.shape for each in blocks] == [(3, 3, 18, 18)] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_the_classifier_traces_and_draws_by_key(family, stirred, pictures, sizes):
    network = stirred(family, "elliptical", metric="random")
    size = sizes[family].image_size
    model = ImageClassifier(
        network, input_shape=(3, size, size), num_classes=5, mean=[0] * 3, std=[1] * 3, name="m"
    )
    images = pictures(family)
    logits = model(images, KEYS)
    assert torch.equal(logits, model(images, KEYS))
    assert not torch.allclose(logits, model(images, KEYS + 1), atol=1e-6)
    assert torch.allclose(model.trace(images, KEYS)[0], logits, rtol=0, atol=1e-9)
    rows, columns = network.grid_size
    entering = network.embed(images)
    assert entering.shape[1] == rows * columns + network.num_prefix_tokens


@pytest.mark.parametrize("family", ["rvt", "fan"])
def test_images_of_another_size_are_refused(family, stirred, pictures):
    images = nn.functional.pad(pictures(family), (0, 16, 0, 16))
    with pytest.raises(UsageError, match=r"was built for images of shape \(batch, 3, .*resize"):
        stirred(family)(images)


def test_a_grid_needs_to_know_that_there_is_no_class_token(stirred, pictures):
    network = stirred("fan", "neighborhood", kernel=3)
    with pytest.raises(UsageError, match=r"after 1 prefix tokens, got 16 tokens.*prefix_tokens"):
        network(pictures("fan"))


def test_losses_of_all_stages_add_up(stirred, pictures):
    """What the blocks of the first stage add is not lost on the way to the second."""
    network = stirred("rvt", "primal", rank=2)
    with AuxiliaryLoss(network) as whole:
        network(pictures("rvt"))
    first = stirred("rvt", "primal", changes={"attention_blocks": 3}, rank=2)
    state = {
        name: each for name, each in network.state_dict().items() if name in first.state_dict()
    }
    first.load_state_dict(state)
    with AuxiliaryLoss(first) as part:
        first(pictures("rvt"))
    assert (whole.per_sample > part.per_sample).all()
    assert (part.per_sample > 0).all()

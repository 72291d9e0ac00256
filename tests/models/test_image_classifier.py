"""The classifier as a whole: no state leaks, however it is run, and foreign networks fit in."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import ImageClassifier, ModelDescription
from robustbench_elliptical.models.attention import MECHANISMS

NAMES = list(MECHANISMS)


def logits_and_gradient(model, images):
    images = images.clone().requires_grad_()
    logits = model(images)
    loss = nn.functional.cross_entropy(logits, torch.arange(len(images)), reduction="sum")
    return logits.detach(), torch.autograd.grad(loss, images)[0]


def input_gradient(model, images):
    return logits_and_gradient(model, images)[1]


@pytest.mark.parametrize("name", NAMES)
def test_images_alone_equal_images_in_a_batch(name, tiny_classifier, images):
    model, images = tiny_classifier(name).double(), images.double()
    together = model(images)
    alone = torch.cat([model(image[None]) for image in images])
    assert torch.allclose(alone, together, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_trace_equals_forward(name, tiny_classifier, images):
    model = tiny_classifier(name).double()
    logits, blocks = model.trace(images.double())
    assert torch.allclose(logits, model(images.double()), atol=1e-10)
    assert [block.weights.shape for block in blocks] == [(4, 3, 17, 17)] * 3
    assert [("metric" in block.state) for block in blocks] == [
        mechanism.layer.index > 0 and name == "elliptical" for mechanism in model.mechanisms()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_two_models_interleaved_by_hand(name, tiny_classifier, images):
    """Block by block in turns, each must get what it gets on its own."""
    models = [tiny_classifier(name, seed=seed).network for seed in (0, 1)]
    expected = [model(images) for model in models]
    tokens, states = [model.embed(images) for model in models], [{}, {}]
    for index in range(3):
        for turn, model in enumerate(models):
            tokens[turn], states[turn] = model.blocks[index](tokens[turn], states[turn])
    for turn, model in enumerate(models):
        assert torch.equal(model.forward_head(model.norm(tokens[turn])), expected[turn])


@pytest.mark.parametrize("name", NAMES)
def test_a_forward_that_fails_half_way_leaves_nothing_behind(name, tiny_classifier, images):
    model = tiny_classifier(name)
    expected = model(images)

    def fail(*_):
        raise RuntimeError("half-way")

    hook = model.network.blocks[1].mlp.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="half-way"):
        model(images.flip(0))
    hook.remove()
    assert torch.equal(model(images), expected)


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_mix_states(name, tiny_classifier, images):
    model = tiny_classifier(name)
    batches = [images.roll(shift, 0) * (1 - shift / 20) for shift in range(12)]
    with torch.no_grad():
        expected = [model(batch) for batch in batches]

    def run(batch):
        with torch.no_grad():
            return model(batch)

    with ThreadPoolExecutor(4) as pool:
        assert all(map(torch.equal, pool.map(run, batches), expected))


@pytest.mark.parametrize("mode", ["detached", "through"])
@pytest.mark.parametrize("name", NAMES)
def test_activation_checkpointing_gives_equal_gradients(name, mode, tiny_classifier, images):
    model = tiny_classifier(name)
    model.set_gradient_mode(mode)
    expected = input_gradient(model, images)
    model.network.set_grad_checkpointing()
    assert torch.equal(input_gradient(model, images), expected)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_equals_eager(name, tiny_classifier, images):
    """Capture and differentiation by torch.compile, without its slow code generation."""
    model = tiny_classifier(name)
    expected = logits_and_gradient(model, images)
    actual = logits_and_gradient(torch.compile(model, backend="aot_eager"), images)
    torch.compiler.reset()
    assert torch.allclose(actual[0], expected[0], atol=1e-5)
    assert torch.allclose(actual[1], expected[1], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles(name, tiny_classifier, images):
    model = tiny_classifier(name)
    expected = model(images)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(images), expected)
        assert twin.description == model.description
        twin.set_gradient_mode("through")
        assert all(each.gradient_mode == "detached" for each in model.mechanisms())


@pytest.mark.parametrize("name", NAMES)
def test_data_parallel_replicas(name, tiny_classifier, images):
    """`nn.DataParallel` on one CPU calls the module; its replicas are shallow copies like these."""
    model = tiny_classifier(name)
    expected = model(images)
    assert torch.equal(nn.DataParallel(model)(images), expected)
    replica = model._replicate_for_data_parallel()
    assert replica.description == model.description
    assert replica.input_shape == model.input_shape


def test_sample_keys_reach_the_random_control(tiny_classifier, images):
    model = tiny_classifier(metric="random")
    keys = torch.tensor([7, 8, 9, 10])
    logits = model(images, sample_keys=keys)
    assert torch.allclose(model(images[2:3], sample_keys=keys[2:3])[0], logits[2], atol=1e-5)
    assert not torch.allclose(model(images, sample_keys=keys + 1), logits, atol=1e-4)


def test_gradient_mode_changes_gradients_and_not_logits(tiny_classifier, images):
    model = tiny_classifier()
    before = model(images), input_gradient(model, images)
    model.set_gradient_mode("through")
    assert torch.equal(model(images), before[0])
    assert not torch.allclose(input_gradient(model, images), before[1], rtol=1e-2)


def test_forward_under_autocast_is_close(tiny_classifier, images):
    model = tiny_classifier()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(images)
    assert bool(logits.isfinite().all())


# --- Foreign networks


class Linear(nn.Module):
    def __init__(self, wrap=lambda logits: logits):
        super().__init__()
        self.linear = nn.Linear(12, 3)
        self.wrap = wrap

    def forward(self, images):
        return self.wrap(self.linear(images.flatten(1)))


def wrapped(wrap=lambda logits: logits, num_classes=3, **changes):
    values = {"mean": [0.5] * 3, "std": [0.5] * 3, "input_shape": (3, 2, 2), **changes}
    return ImageClassifier(Linear(wrap), num_classes=num_classes, name="foreign", **values)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits: {"logits": logits, "loss": None},
        lambda logits: SimpleNamespace(logits=logits),
        lambda logits: (logits, "hidden"),
        lambda logits: [logits],
    ],
)
def test_logits_are_unwrapped(wrap):
    model = wrapped(wrap)
    images = torch.rand(2, 3, 2, 2)
    expected = model.network.linear(((images - 0.5) / 0.5).flatten(1))
    assert torch.equal(model(images), expected)
    assert model.mechanisms() == []
    assert model.description == ModelDescription(
        name="foreign",
        source="python",
        mean=(0.5,) * 3,
        std=(0.5,) * 3,
        input_shape=(3, 2, 2),
        num_classes=3,
        parameters=39,
    )
    with pytest.raises(TypeError, match="no registered attention"):
        model.trace(images)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda logits: {"scores": logits}, "must return logits: .* got dict"),
        (lambda logits: (), "got tuple"),
        (lambda logits: None, "got NoneType"),
        (lambda logits: logits[0], r"shape \(batch, 3\), got \(3,\)"),
        (lambda logits: logits[:, :2], r"shape \(batch, 3\), got \(2, 2\)"),
    ],
)
def test_anything_else_is_refused(wrap, message):
    with pytest.raises(UsageError, match=message):
        wrapped(wrap)(torch.rand(2, 3, 2, 2))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.rand(2, 1, 2, 2), r"shape \(batch, 3, 2, 2\), got \(2, 1, 2, 2\)"),  # no broadcast
        (torch.rand(3, 2, 2), r"got \(3, 2, 2\)"),
        (torch.zeros(2, 3, 2, 2, dtype=torch.uint8), "divide 0-255 data by 255"),
    ],
)
def test_images_that_do_not_fit_are_refused(images, message):
    with pytest.raises(UsageError, match=message):
        wrapped()(images)


@pytest.mark.parametrize("changes", [{"mean": [0.5]}, {"std": [0.5, 0.5, 0.0]}, {"std": [1.0]}])
def test_normalisation_that_does_not_fit_is_refused(changes):
    with pytest.raises(UsageError, match="mean and std must be 3 numbers each, std above 0"):
        wrapped(**changes)

"""Gradients of a batch of one image, whatever the layout of memory around batch normalisation."""

import copy
import pickle

import pytest
import timm
import torch
from torch import nn

from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.models.single_images import steady_batch_norms


class ConvolutionalTokens(nn.Module):
    """A convolutional patch embedding and a head: normalisation lies before and after tokens."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 2, stride=2), nn.BatchNorm2d(6))
        self.middle = nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 4)

    def forward(self, images):
        tokens = self.stem(images).flatten(2).transpose(1, 2)
        tokens = tokens + torch.tanh(self.head(tokens)).sum(dim=-1, keepdim=True)
        grid = self.middle(tokens.transpose(1, 2).reshape(len(tokens), 6, 4, 4))
        return self.head((grid.flatten(2).transpose(1, 2) ** 2).mean(dim=1))


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        built = ConvolutionalTokens()
        for module in built.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
    return built.double().eval()


def derivative(network, images, along):
    """The directional derivative by autograd, and by a central difference."""
    images = images.clone().requires_grad_()
    gradient = torch.autograd.grad(network(images)[0, 1], images)[0]
    with torch.no_grad():
        above, below = (network(images + step * along)[0, 1] for step in (1e-6, -1e-6))
    return float((gradient * along).sum()), float(above - below) / 2e-6


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_gradient_of_one_image_is_right(layout, network):
    generator = torch.Generator().manual_seed(1)
    images, along = torch.randn(2, 1, 3, 8, 8, generator=generator, dtype=torch.float64)
    steady_batch_norms(network)
    found, measured = derivative(network, images.contiguous(memory_format=layout), along)
    assert found == pytest.approx(measured, rel=1e-6)


def test_an_image_has_the_gradient_that_it_has_in_a_batch(network):
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1)).double()
    model = ImageClassifier(
        network, input_shape=(3, 8, 8), num_classes=4, mean=[0.5] * 3, std=[0.5] * 3, name="m"
    )
    for way in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        leaf = images.clone().requires_grad_()
        together = torch.autograd.grad(way(leaf).square().sum(), leaf)[0]
        for row in range(3):
            leaf = images[row : row + 1].clone().requires_grad_()
            alone = torch.autograd.grad(way(leaf).square().sum(), leaf)[0]
            assert torch.allclose(alone[0], together[row], rtol=0, atol=1e-10)


def test_a_classifier_of_timm(network):
    """XCiT's patch embedding is such a network."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        xcit = timm.create_model("xcit_nano_12_p16_224", num_classes=4, img_size=32)
    model = ImageClassifier(
        xcit.double().eval(), input_shape=(3, 32, 32), num_classes=4, mean=[0.5] * 3,
        std=[0.5] * 3, name="xcit",
    )  # fmt: skip
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)).double()
    gradients = []
    for batch in (images, images[:1]):
        leaf = batch.clone().requires_grad_()
        gradients.append(torch.autograd.grad(model(leaf)[0, 1], leaf)[0])
    assert gradients[0][0].abs().max() > 0
    assert torch.allclose(gradients[1][0], gradients[0][0], rtol=1e-6, atol=1e-12)


def test_it_changes_no_output_and_is_done_once(network):
    images = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1)).double()
    before = network(images)
    for _ in range(2):
        steady_batch_norms(network)
    assert torch.equal(network(images), before)
    assert len(network.middle._forward_hooks) == len(network.middle._forward_pre_hooks) == 1

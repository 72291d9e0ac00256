"""The mechanisms of this folder in whole models, where state and leaks cross layers."""

import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import AttentionChoice
from robustbench_elliptical.models.attention import AuxiliaryLoss
from robustbench_elliptical.models.backbones.vision_transformer import AttentionVisionTransformer
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model

CAUSAL = {
    "longformer": {"window": 4, "global_tokens": [0, 5]},
    "reformer": {"buckets": 2, "chunk": 2},
    "rvt_paas": {},
    "forgetting": {},
    "gated": {},
    "neighborhood": {"kernel": 3, "dilation": [1, 2]},
    "energy_gated": {},
    "lightning": {"block": 4},
}
DECODER = DecoderArchitecture(
    vocab_size=30, layers=3, d_model=16, num_heads=2, d_head=8, d_inner=16, context_length=12
)


@pytest.mark.parametrize("name", CAUSAL)
def test_no_decoder_sees_the_future(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build_language_model(
            DECODER, AttentionChoice(mechanism=name, settings=CAUSAL[name])
        )
        model.double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        tokens = torch.randint(0, 30, (3, 12))
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 11) % 30
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert torch.allclose(after[:, :7], before[:, :7], rtol=0, atol=1e-13)
    assert not torch.allclose(after[:, 7:], before[:, 7:], atol=1e-3)
    assert not torch.allclose(before[0, 3], before[1, 3], atol=1e-3)


@pytest.mark.parametrize("name", ["linformer", "nystromformer", "primal"])
def test_no_decoder_without_a_causal_form(name):
    with pytest.raises(UsageError, match=f"attention {name} has no causal form"):
        build_language_model(DECODER, AttentionChoice(mechanism=name))


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_trainer_can_add_the_auxiliary_loss(checkpointing):
    """Its gradient reaches the spectrum, which nothing else does."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = AttentionVisionTransformer(
            "primal",
            {"rank": 2},
            img_size=8,
            patch_size=4,
            embed_dim=8,
            depth=2,
            num_heads=2,
            num_classes=3,
        ).double()
        images = torch.randn(2, 3, 8, 8).double()
    network.set_grad_checkpointing(checkpointing)
    with AuxiliaryLoss(network) as auxiliary:
        logits = network(images)
    (logits.square().sum() + auxiliary.mean()).backward()
    with AuxiliaryLoss(network) as alone:
        network(images[:1])
    assert torch.allclose(alone.per_sample[0], auxiliary.per_sample[0])
    for block in network.blocks:
        assert bool((block.attn.mechanism.root_spectrum.grad != 0).all())

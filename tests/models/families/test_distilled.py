"""The distilled DeiT against timm's, and what its two heads mean."""

import torch
from timm.models.deit import VisionTransformerDistilled

from robustbench_elliptical.models import AttentionChoice, build_network, load_card, shipped_cards


def test_it_is_timms_network(stirred, pictures):
    ours = stirred("deit-distilled")
    timms = VisionTransformerDistilled(
        img_size=32, patch_size=8, embed_dim=24, depth=3, num_heads=3, num_classes=5
    )
    assert list(ours.state_dict()) == list(timms.state_dict())
    timms.double().eval().load_state_dict(ours.state_dict())
    images = pictures("deit-distilled")
    assert torch.allclose(ours(images), timms(images), rtol=0, atol=1e-10)


def test_the_tiny_one_has_the_published_size():
    for name in ("deit-tiny-distilled-softmax", "deit-tiny-distilled-elliptical"):
        card = load_card(shipped_cards()[name])
        with torch.device("meta"):
            network = build_network(card.architecture, card.attention)
        assert sum(each.numel() for each in network.parameters()) == 5_910_800
        assert network.pos_embed.shape == (1, 198, 192)


def test_logits_are_the_mean_of_both_heads(stirred, pictures):
    network, images = stirred("deit-distilled"), pictures("deit-distilled")
    tokens = network.norm(network.trace(images)[1][-1].tokens)
    expected = (network.head(tokens[:, 0]) + network.head_dist(tokens[:, 1])) / 2
    assert torch.allclose(network(images), expected, rtol=0, atol=1e-10)
    one, other = network.head(tokens[:, 0]), network.head_dist(tokens[:, 1])
    assert not torch.allclose(one, other, atol=1e-2)


def test_with_equal_tokens_and_heads_it_has_one_head(stirred, pictures):
    network, images = stirred("deit-distilled"), pictures("deit-distilled")
    with torch.no_grad():
        network.dist_token.copy_(network.cls_token)
        network.pos_embed[:, 1] = network.pos_embed[:, 0]
    network.head_dist.load_state_dict(network.head.state_dict())
    tokens = network.norm(network.trace(images)[1][-1].tokens)
    assert torch.allclose(tokens[:, 0], tokens[:, 1], rtol=0, atol=1e-12)
    assert torch.allclose(network(images), network.head(tokens[:, 0]), rtol=0, atol=1e-10)


def test_training_with_a_teacher_gets_both_heads(sizes, pictures):
    network = build_network(sizes["deit-distilled"], AttentionChoice(mechanism="softmax"))
    network.set_distilled_training(True)
    images = pictures("deit-distilled").float()
    one, other = network.train()(images)
    assert one.shape == other.shape == (3, 5)
    assert torch.allclose(network.eval()(images), (one + other) / 2, atol=1e-6)

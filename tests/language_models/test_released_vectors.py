"""The released language model's own numbers, its names and its sizes."""

import pytest
import torch

from robustbench_elliptical.models import AttentionChoice
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model


@pytest.mark.parametrize("variant", ["softmax", "elliptical-released"])
def test_losses_of_every_position(variant, vectors, released_model):
    model = released_model(variant)
    with torch.no_grad():
        losses = model.token_losses(vectors.tokens, vectors.targets)
        hidden, _ = model.trace(vectors.tokens)
        explicit = model.hidden_losses(hidden, vectors.targets)
    assert (losses - vectors.losses[variant]).abs().max() < 1e-5
    assert (explicit - vectors.losses[variant]).abs().max() < 1e-5


def test_a_wrong_attention_is_far_off(vectors, released_model):
    """What the tolerance must tell apart: the same weights under other attention settings."""
    expected = vectors.losses["elliptical-released"]
    with torch.no_grad():
        for variant in ("softmax", "elliptical"):
            wrong = released_model(variant).token_losses(vectors.tokens, vectors.targets)
            assert (wrong - expected).abs().max() > 1e-3


def test_the_small_wikitext_configuration_has_the_released_names_and_sizes():
    architecture = DecoderArchitecture(
        vocab_size=267_735,
        layers=16,
        d_model=128,
        num_heads=8,
        d_head=16,
        d_inner=2048,
        context_length=256,
        cutoffs=(20_000, 40_000, 200_000),
        dropout=0.1,
    )
    with torch.device("meta"):
        model = build_language_model(architecture, AttentionChoice(mechanism="softmax"))
    parts = ["q_net.weight", "kv_net.weight", "o_net.weight"]
    parts = [f"dec_attn.{part}" for part in (*parts, "layer_norm.weight", "layer_norm.bias")]
    parts += [f"pos_ff.{part}" for part in ("layer_norm.weight", "layer_norm.bias")]
    parts += [f"pos_ff.CoreNet.{index}.{part}" for index in (0, 3) for part in ("weight", "bias")]
    names = {f"layers.{index}.{part}" for index in range(16) for part in parts}
    names |= {f"crit.{part}" for part in ("cluster_weight", "cluster_bias")}
    names |= {f"crit.out_layers.0.{part}" for part in ("weight", "bias")}
    names |= {"word_emb.emb_layers.0.weight", "pos_emb.inv_freq"}
    assert set(model.state_dict()) == names
    assert len(names) == 182
    assert sum(each.numel() for each in model.parameters()) == 44_018_394

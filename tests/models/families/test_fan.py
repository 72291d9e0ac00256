"""FAN against its formulas written out, timm's XCiT, and its published sizes and names."""

import pytest
import torch
import torch.nn.functional as functional
from timm.models.xcit import Xcit

from robustbench_elliptical.models import (
    AttentionChoice,
    FanArchitecture,
    build_network,
    load_card,
    shipped_cards,
)


def test_without_its_blocks_it_is_timms_xcit(stirred, pictures):
    """Stem, positions, class attention and head; blocks that add nothing."""
    network = stirred("fan")
    with torch.no_grad():
        for block in network.blocks:
            block.gamma1.zero_()
            block.gamma2.zero_()
    xcit = Xcit(
        img_size=32, patch_size=8, embed_dim=24, depth=0, num_heads=3, num_classes=5,
        tokens_norm=True,
    ).double().eval()  # fmt: skip
    shared = {
        name: each for name, each in network.state_dict().items() if not name.startswith("blocks.")
    }
    xcit.load_state_dict(shared, strict=True)
    images = pictures("fan")
    assert torch.allclose(network(images), xcit(images), rtol=0, atol=1e-10)


def channel_mixing(state, tokens, heads):
    """The formula, token by token and head by head."""
    batch, _, dim = tokens.shape
    hidden = functional.linear(tokens, state["mlp_v.fc1.weight"], state["mlp_v.fc1.bias"])
    grid = hidden.mT.unflatten(2, (4, 4))
    width = grid.shape[1]
    for name in ("conv1", "conv2"):
        part = f"mlp_v.dwconv.{name}"
        weights = (state[f"{part}.weight"], state[f"{part}.bias"])
        grid = functional.conv2d(grid, *weights, padding=1, groups=width)
        if name == "conv1":
            part = "mlp_v.dwconv.bn"
            statistics = (state[f"{part}.running_mean"], state[f"{part}.running_var"])
            weights = (state[f"{part}.weight"], state[f"{part}.bias"])
            grid = functional.batch_norm(functional.gelu(grid), *statistics, *weights)
    hidden = hidden + state["mlp_v.gamma"] * grid.flatten(2).mT
    values = functional.linear(hidden, state["mlp_v.fc2.weight"], state["mlp_v.fc2.bias"])
    values = functional.layer_norm(values, (dim,), state["norm_v.weight"], state["norm_v.bias"])
    queries = functional.linear(tokens, state["q.weight"], state["q.bias"])
    output = torch.empty_like(tokens)
    size = dim // heads
    for head in range(heads):
        channels = slice(head * size, (head + 1) * size)
        shares = tokens[..., channels].softmax(dim=1).mean(dim=2)
        for channel in range(head * size, (head + 1) * size):
            rows = queries[..., channel].softmax(dim=1)
            gate = state["temperature"][head] * torch.sigmoid((rows * shares).sum(dim=1))
            output[..., channel] = gate.reshape(batch, 1) * values[..., channel]
    return output


def test_channel_mixing_is_the_formula(stirred):
    mixing = stirred("fan").blocks[1].mlp
    tokens = torch.randn(2, 16, 24, generator=torch.Generator().manual_seed(3)).double() * 3
    expected = channel_mixing(mixing.state_dict(), tokens, heads=3)
    assert torch.allclose(mixing(tokens), expected, rtol=0, atol=1e-10)


def test_the_gate_knows_no_order_of_tokens(stirred):
    mixing = stirred("fan").blocks[1].mlp
    tokens = torch.randn(2, 16, 24, generator=torch.Generator().manual_seed(3)).double() * 3
    order = torch.randperm(16, generator=torch.Generator().manual_seed(4))
    assert torch.allclose(mixing.gate(tokens[:, order]), mixing.gate(tokens), rtol=0, atol=1e-12)
    moved = mixing.mlp_v(tokens[:, order])
    assert not torch.allclose(moved, mixing.mlp_v(tokens)[:, order], atol=1e-3)


def test_at_the_start_the_gate_is_half_the_temperature(sizes):
    network = build_network(sizes["fan"], AttentionChoice(mechanism="softmax"))
    gate = network.blocks[0].mlp.gate(torch.randn(2, 16, 24))
    assert gate.shape == (2, 1, 24)
    # Its argument is about 1 / tokens, a share of a share.
    assert torch.allclose(gate, torch.sigmoid(torch.tensor(1 / 16)).expand_as(gate), atol=5e-3)


def test_without_temperature_a_block_mixes_tokens_only(stirred):
    block = stirred("fan").blocks[0]
    with torch.no_grad():
        block.mlp.temperature.zero_()
    tokens = torch.randn(2, 16, 24, generator=torch.Generator().manual_seed(3)).double()
    attended, _ = block.attn(block.norm1(tokens), {})
    assert torch.allclose(block(tokens, {})[0], tokens + block.gamma1 * attended, atol=1e-12)


def test_token_mixing_is_attention_with_separate_projections(stirred):
    mixing = stirred("fan").blocks[0].attn
    tokens = torch.randn(2, 16, 24, generator=torch.Generator().manual_seed(3)).double()
    query, (key, value) = mixing.q(tokens), mixing.kv(tokens).unflatten(2, (2, 24)).unbind(2)
    query, key, value = (
        each.unflatten(2, (3, 8)).permute(0, 2, 1, 3) for each in (query, key, value)
    )
    mixed = (query @ key.mT / 8**0.5).softmax(-1) @ value
    expected = mixing.proj(mixed.permute(0, 2, 1, 3).flatten(2))
    assert torch.allclose(mixing(tokens, {})[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fan-tiny-softmax", 7_319_920),
        ("fan-tiny-elliptical", 7_319_920),
        ("fan-small-softmax", 28_345_336),
        ("fan-small-elliptical", 28_345_336),
        ("fan-base-softmax", 54_350_320),
    ],
)
def test_published_sizes(name, count):
    card = load_card(shipped_cards()[name])
    with torch.device("meta"):
        network = build_network(card.architecture, card.attention)
    assert sum(each.numel() for each in network.parameters()) == count


def test_the_large_one_too():
    sizes = FanArchitecture(image_size=224, embed_dim=480, depth=24, num_heads=10, num_classes=1000)
    with torch.device("meta"):
        network = build_network(sizes, AttentionChoice(mechanism="softmax"))
    assert sum(each.numel() for each in network.parameters()) == 80_574_100


def test_names_are_those_of_the_release():
    card = load_card(shipped_cards()["fan-tiny-softmax"])
    with torch.device("meta"):
        names = set(build_network(card.architecture, card.attention).state_dict())
    pair = ("weight", "bias")
    batch_norm = (*pair, "running_mean", "running_var", "num_batches_tracked")
    parts = {
        **dict.fromkeys(
            ("norm1", "norm2", "attn.q", "attn.kv", "attn.proj", "mlp.q", "mlp.norm_v"), pair
        ),
        **dict.fromkeys(("mlp.mlp_v.fc1", "mlp.mlp_v.fc2"), pair),
        **dict.fromkeys(("mlp.mlp_v.dwconv.conv1", "mlp.mlp_v.dwconv.conv2"), pair),
        "mlp.mlp_v.dwconv.bn": batch_norm,
    }
    expected = {
        f"blocks.{i}.{part}.{k}" for i in range(12) for part, ks in parts.items() for k in ks
    }
    for part in ("gamma1", "gamma2", "mlp.temperature", "mlp.mlp_v.gamma"):
        expected |= {f"blocks.{i}.{part}" for i in range(12)}
    for i in range(2):
        expected |= {f"cls_attn_blocks.{i}.gamma{which}" for which in (1, 2)}
        parts = ("norm1", "norm2", "attn.q", "attn.k", "attn.v", "attn.proj", "mlp.fc1", "mlp.fc2")
        expected |= {f"cls_attn_blocks.{i}.{part}.{k}" for part in parts for k in pair}
    for i in range(0, 8, 2):
        expected |= {f"patch_embed.proj.{i}.0.weight"}
        expected |= {f"patch_embed.proj.{i}.1.{k}" for k in batch_norm}
    expected |= {
        f"{part}.{k}" for part in ("pos_embed.token_projection", "norm", "head") for k in pair
    }
    assert names == expected | {"cls_token"}

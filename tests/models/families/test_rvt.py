"""RVT against an independent forward of its formulas, its published size and names."""

import re

import pytest
import torch
import torch.nn.functional as functional

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import build_network, load_card, shipped_cards

BLOCK = {
    "norm1": ("weight", "bias"),
    "attn.qkv": ("weight", "bias"),
    "attn.proj": ("weight", "bias"),
    "norm2": ("weight", "bias"),
    **{f"mlp.{name}": ("weight", "bias") for name in ("fc1", "dwconv", "fc2")},
    **{
        f"mlp.{name}": ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
        for name in ("bn1", "bn2", "bn3")
    },
}


def normalise(state, name, grid):
    statistics = (state[f"{name}.running_mean"], state[f"{name}.running_var"])
    return functional.batch_norm(grid, *statistics, state[f"{name}.weight"], state[f"{name}.bias"])


def convolve(state, name, grid, **options):
    return functional.conv2d(grid, state[f"{name}.weight"], state[f"{name}.bias"], **options)


def attend(state, name, tokens, heads, positions):
    joint = functional.linear(tokens, state[f"{name}.qkv.weight"], state[f"{name}.qkv.bias"])
    query, key, value = (
        part.unflatten(2, (heads, 8)).permute(0, 2, 1, 3) for part in joint.split(heads * 8, dim=2)
    )
    logits = torch.einsum("bhid,bhjd->bhij", query, key) / 8**0.5
    if positions is not None:
        logits = logits * torch.sigmoid(positions)
    mixed = torch.einsum("bhij,bhjd->bihd", logits.softmax(-1), value).flatten(2)
    return functional.linear(mixed, state[f"{name}.proj.weight"], state[f"{name}.proj.bias"])


def layer_norm(state, name, tokens):
    weights = (state[f"{name}.weight"], state[f"{name}.bias"])
    return functional.layer_norm(tokens, tokens.shape[-1:], *weights, eps=1e-6)


def expected(state, images):
    """The forward as the paper and the release describe it, on a grid throughout."""
    grid = convolve(state, "patch_embed.proj.0", images, stride=2, padding=2)
    grid = functional.max_pool2d(normalise(state, "patch_embed.proj.1", grid), 3, 2, 1)
    grid = convolve(state, "patch_embed.proj.3", grid, stride=4)
    for stage, (depth, heads) in enumerate(((3, 2), (2, 4))):
        if stage:
            width = grid.shape[1]
            grid = convolve(state, "pools.0.conv", grid, stride=2, padding=1, groups=width)
        for index in range(depth):
            name = f"transformers.{stage}.blocks.{index}"
            tokens = grid.flatten(2).mT
            positions = state.get(f"{name}.attn.mechanism.position_logits")
            normed = layer_norm(state, f"{name}.norm1", tokens)
            tokens = tokens + attend(state, f"{name}.attn", normed, heads, positions)
            grid = tokens.mT.unflatten(2, grid.shape[2:])
            inner = layer_norm(state, f"{name}.norm2", tokens).mT.unflatten(2, grid.shape[2:])
            inner = normalise(state, f"{name}.mlp.bn1", convolve(state, f"{name}.mlp.fc1", inner))
            inner = functional.gelu(inner)
            inner = convolve(state, f"{name}.mlp.dwconv", inner, padding=1, groups=inner.shape[1])
            inner = functional.gelu(normalise(state, f"{name}.mlp.bn2", inner))
            inner = convolve(state, f"{name}.mlp.fc2", inner)
            grid = grid + normalise(state, f"{name}.mlp.bn3", inner)
    pooled = layer_norm(state, "norm", grid.mean(dim=(2, 3)))
    return functional.linear(pooled, state["head.weight"], state["head.bias"])


@pytest.mark.parametrize(
    ("mechanism", "changes"),
    [("softmax", {}), ("rvt_paas", {"attention_blocks": 3}), ("rvt_paas", {"attention_blocks": 2})],
)
def test_it_is_the_formula(mechanism, changes, stirred, pictures):
    network = stirred("rvt", mechanism, changes)
    state = network.state_dict()
    scaled = [name for name in state if name.endswith("position_logits")]
    assert len(scaled) == changes.get("attention_blocks", 0)
    images = pictures("rvt")
    assert torch.allclose(network(images), expected(state, images), rtol=0, atol=1e-9)


def test_position_logits_far_up_are_softmax(stirred, pictures):
    plain, scaled = stirred("rvt"), stirred("rvt", "rvt_paas", {"attention_blocks": 3})
    state = {
        name: plain.state_dict().get(name, torch.full_like(each, 50))
        for name, each in scaled.state_dict().items()
    }
    scaled.load_state_dict(state)
    images = pictures("rvt")
    assert torch.allclose(scaled(images), plain(images), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("rvt-tiny-softmax", 8_646_376),
        ("rvt-tiny-elliptical", 8_646_376),
        ("rvt-tiny-plus", 8_646_376 + 10 * 6 * 196 * 196),
    ],
)
def test_the_tiny_one_has_the_published_size(name, count):
    card = load_card(shipped_cards()[name])
    with torch.device("meta"):
        network = build_network(card.architecture, card.attention)
    assert sum(each.numel() for each in network.parameters()) == count


def test_names_are_those_of_the_release():
    with torch.device("meta"):
        card = load_card(shipped_cards()["rvt-tiny-softmax"])
        names = set(build_network(card.architecture, card.attention).state_dict())
    blocks = {
        f"transformers.{stage}.blocks.{index}.{part}.{kind}"
        for stage, depth in enumerate((10, 2))
        for index in range(depth)
        for part, kinds in BLOCK.items()
        for kind in kinds
    }
    assert blocks <= names
    others = {re.sub(r"\d", "#", each) for each in names - blocks}
    assert {each.rpartition(".")[0] for each in others} == {
        "patch_embed.proj.#", "pools.#.conv", "norm", "head"
    }  # fmt: skip


def test_blocks_count_over_all_stages(stirred, pictures):
    network = stirred("rvt", "elliptical", blocks=[2, 4])
    _, blocks = network.trace(pictures("rvt"))
    assert [index for index, each in enumerate(blocks) if "metric" in each.state] == [2, 4]


@pytest.mark.parametrize(
    ("blocks", "changes", "message"),
    [
        ([1, 3], {}, r"must leave out block 3, the first of a stage.*\[1, 3\]"),
        ([5], {}, r"must lie in 1\.\.4.*\[5\]"),
        ([4], {"attention_blocks": 3}, r"must lie in 1\.\.2, the blocks that have this"),
        ([0], {}, "block 0 has no previous values"),
    ],
)
def test_blocks_that_cannot_have_a_metric(blocks, changes, message, stirred):
    with pytest.raises(UsageError, match=message):
        stirred("rvt", "elliptical", changes, blocks=blocks)

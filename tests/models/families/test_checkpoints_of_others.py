"""Checkpoints as other code writes them, into the network of a card, strictly."""

import argparse

import pytest
import torch
from timm.scheduler import CosineLRScheduler
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import card_to_toml, load_model, state_sha256

FAMILIES = ["deit-distilled", "rvt", "fan"]
ARGUMENTS = argparse.Namespace(
    batch_size=256, lr=5e-4, opt_betas=None, robust=True, data_path="/data/imagenet", drop_path=0.1
)


@pytest.fixture
def load(tmp_path, family_card):
    """Write a checkpoint and a card, and load them."""

    def write_and_load(content, *card, weights="model", name="checkpoint.pth", **settings):
        torch.save(content, tmp_path / name)
        made = family_card(*card, **settings)
        (tmp_path / "card.toml").write_text(card_to_toml(made), encoding="utf-8")
        path = tmp_path / "card.toml"
        return load_model(str(path), checkpoint=tmp_path / name, weights=weights)

    return write_and_load


def float_state(network) -> dict:
    return {
        name: each.float() if each.is_floating_point() else each
        for name, each in network.state_dict().items()
    }


def robust_kde_container(state, averaged) -> dict:
    """What the training script of the robust-KDE repository saves, of real objects."""
    layer = nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=1e-3)
    layer(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    schedule = CosineLRScheduler(optimiser, t_initial=300, warmup_t=5)
    return {
        "model": state,
        "optimizer": optimiser.state_dict(),
        "lr_scheduler": schedule.state_dict(),
        "epoch": 299,
        "model_ema": averaged,
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "args": ARGUMENTS,
    }


@pytest.mark.parametrize("mechanism", ["softmax", "elliptical", "rvt_paas"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_state_dict_comes_back(family, mechanism, load, stirred, pictures):
    network = stirred(family, mechanism)
    model = load(float_state(network), family, mechanism)
    assert model.description.architecture["family"] == family
    assert model.description.weights_sha256 == state_sha256(float_state(network))
    images = pictures(family).sigmoid()
    with torch.no_grad():
        expected = network((images - 0.5) / 0.25)
        assert torch.allclose(model(images.float()).double(), expected, atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_robust_kde_container(family, load, stirred):
    """Distilled DeiT too: its training script is DeiT's."""
    state = float_state(stirred(family))
    averaged = {name: each * 2 for name, each in state.items()}
    content = robust_kde_container(state, averaged)
    assert load(content, family).description.weights_sha256 == state_sha256(state)
    ema = load(content, family, weights="model_ema")
    assert ema.description.weights_sha256 == state_sha256(averaged)


@pytest.mark.parametrize("container", ["model", "state_dict", None])
def test_fan_with_the_older_spelling(container, load, stirred):
    state = float_state(stirred("fan"))
    older = {name.replace("pos_embed.", "pos_embeder."): each for name, each in state.items()}
    assert sum("pos_embeder" in name for name in older) == 2
    content = older if container is None else {container: older, "epoch": 1, "arch": "fan_tiny"}
    model = load(content, "fan", name="fan_vit_tiny.pth.tar")
    assert model.description.weights_sha256 == state_sha256(state)


def test_the_older_spelling_is_fans_alone(load, stirred):
    state = float_state(stirred("deit-distilled"))
    state["pos_embeder.weight"] = torch.ones(1)
    with pytest.raises(UsageError, match=r"1 unexpected \(pos_embeder.weight\)"):
        load(state, "deit-distilled")


def test_both_spellings_at_once_are_refused(load, stirred):
    state = float_state(stirred("fan"))
    state["pos_embeder.token_projection.bias"] = state["pos_embed.token_projection.bias"]
    with pytest.raises(UsageError, match=r"1 unexpected \(pos_embeder.token_projection.bias\)"):
        load(state, "fan")


@pytest.mark.parametrize("family", ["rvt", "deit-distilled"])
def test_released_position_logits(family, load, stirred):
    changes = {"attention_blocks": 3} if family == "rvt" else {}
    state = float_state(stirred(family, "rvt_paas", changes))
    own, released = "mechanism.position_logits", "att_mask"
    content = {"model": {name.replace(own, released): each for name, each in state.items()}}
    assert sum(name.endswith("attn.att_mask") for name in content["model"]) == 3
    model = load(content, family, "rvt_paas", changes)
    assert model.description.weights_sha256 == state_sha256(state)
    with pytest.raises(UsageError, match=r"3 unexpected \(\S+attn.att_mask, "):
        load(content, family, "softmax", changes)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_missing_and_what_is_too_much_is_named(family, load, stirred):
    state = float_state(stirred(family))
    lost = next(name for name in state if name.endswith("attn.proj.weight"))
    state["blocks.7.attn.extra"] = state.pop(lost)
    with pytest.raises(UsageError) as caught:
        load(state, family)
    message = str(caught.value)
    assert f"1 missing ({lost}); 1 unexpected (blocks.7.attn.extra)" in message
    assert "\n" not in message


def test_a_deit_is_no_distilled_deit(load, stirred):
    """The distilled head of a checkpoint must not be dropped, nor made up."""
    state = float_state(stirred("deit-distilled"))
    plain = {name: each for name, each in state.items() if "dist" not in name}
    with pytest.raises(UsageError, match=r"3 missing \(dist_token, head_dist.weight"):
        load(plain, "deit-distilled")

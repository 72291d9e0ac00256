"""Cards of every family: what they must state, what they refuse, and that they read back."""

import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import (
    RvtArchitecture,
    VisionTransformerArchitecture,
    card_to_toml,
    list_models,
    load_card,
    load_model,
    parse_model,
)


@pytest.mark.parametrize("family", ["deit-distilled", "rvt", "fan"])
def test_a_card_reads_back(family, family_card, tmp_path):
    card = family_card(family, "elliptical")
    path = tmp_path / "card.toml"
    path.write_text(card_to_toml(card), encoding="utf-8")
    again = load_card(path)
    assert again == card
    assert type(again.architecture) is type(card.architecture)


def test_a_card_without_a_family_is_a_vision_transformers(family_card, tmp_path):
    text = card_to_toml(family_card("deit-distilled"))
    path = tmp_path / "card.toml"
    path.write_text(text.replace('family = "deit-distilled"\n', ""), encoding="utf-8")
    assert type(load_card(path).architecture) is VisionTransformerArchitecture


@pytest.mark.parametrize(
    ("family", "old", "new", "message"),
    [
        ("fan", 'family = "fan"', 'family = "fann"', "architecture.family of .*'fann'.*'fan'"),
        ("fan", 'family = "fan"', 'family = "decoder"', "known: deit-distilled, fan, rvt, vision"),
        ("fan", 'family = "fan"', "family = 3", "architecture.family: input should be"),
        ("fan", "patch_size = 8", "patch_size = 7", "architecture.patch_size: input should be 8 o"),
        ("fan", "embed_dim = 24", "embed_dim = 28", "embed_dim: input should be a multiple of 8"),
        ("fan", "num_heads = 3", "num_heads = 5", "24 must be a multiple of num_heads 5"),
        ("fan", "image_size = 32", "image_size = 36", "36 must be a multiple of patch_size 8"),
        ("fan", "class_blocks = 2", "class_blocks = 0", "architecture.class_blocks"),
        ("fan", "class_blocks = 2", "attention_blocks = 2", "attention_blocks: is no known field"),
        ("rvt", "image_size = 64", "image_size = 60", "architecture.image_size: .*multiple of 16"),
        ("rvt", "image_size = 64", "image_size = 64\npatch_size = 8", "patch_size: is no known"),
        ("rvt", "depth = [\n    3,", "depth = [", "one number for each stage, got 1 and 2"),
        ("rvt", "depth = [\n    3,", "depth = [\n    0,", "architecture.depth.0: input should be"),
        ("rvt", "    4,\n]", "    5,\n]", r"num_heads \[2, 5\] must grow to a multiple"),
        ("rvt", "image_size", "attention_blocks = 6\nimage_size", "6 must be at most the 5 blocks"),
        ("deit-distilled", "depth = 3", "depth = [3]", "architecture.depth: input should be a val"),
    ],
)
def test_mistakes_are_named(family, old, new, message, family_card, tmp_path):
    text = card_to_toml(family_card(family))
    assert old in text
    path = tmp_path / "card.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        load_card(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_architecture_that_is_no_section(family_card, tmp_path):
    text = card_to_toml(family_card("fan"))
    start, end = text.index("[architecture]"), text.index("[attention]")
    path = tmp_path / "card.toml"
    path.write_text('architecture = "fan"\n' + text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(UsageError, match=r"architecture.*got 'fan'"):
        load_card(path)


def test_every_family_ships_a_card():
    families = {card.architecture.family for card in list_models()}
    assert {"vision-transformer", "deit-distilled", "rvt", "fan"} <= families
    cards = {card.name: card for card in list_models()}
    assert cards["rvt-tiny-plus"].attention.mechanism == "rvt_paas"
    assert cards["rvt-tiny-plus"].architecture == cards["rvt-tiny-softmax"].architecture.model_copy(
        update={"attention_blocks": 10}
    )
    for kind in ("fan-tiny", "fan-small", "rvt-tiny", "deit-tiny-distilled"):
        elliptical, plain = cards[f"{kind}-elliptical"], cards[f"{kind}-softmax"]
        assert elliptical.architecture == plain.architecture
        assert elliptical.attention.mechanism == "elliptical"
    assert isinstance(cards["rvt-tiny-softmax"].architecture, RvtArchitecture)


def test_they_bring_no_weights():
    for name in ("fan-tiny-elliptical", "rvt-tiny-plus", "deit-tiny-distilled-softmax"):
        with pytest.raises(UsageError, match=f"model {name} comes without weights"):
            load_model(name)
    choice = parse_model("fan-tiny-elliptical,checkpoint=x.pth,metric=identity,blocks=1+2")
    assert choice.attention == {"metric": "identity", "blocks": [1, 2]}

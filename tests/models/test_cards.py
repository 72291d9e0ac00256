"""Cards: what ships is valid, what training writes reads back, what is wrong is named."""

import pytest
import torch

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.preprocessing import Preprocessing
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.models import (
    CheckpointFile,
    ImageCard,
    Measurement,
    Training,
    build_network,
    card_to_toml,
    list_models,
    load_card,
    shipped_cards,
)
from robustbench_elliptical.models.cards import checkpoint_path, resolved_attention

IMAGE_CARDS = [card.name for card in list_models() if isinstance(card, ImageCard)]


@pytest.mark.parametrize("name", IMAGE_CARDS)
def test_every_shipped_card(name):
    path = shipped_cards()[name]
    card = load_card(path)
    assert card.name == name
    assert resolved_attention(card).items() >= card.attention.settings.items()
    with torch.device("meta"):
        build_network(card.architecture, card.attention)
    checkpoint = checkpoint_path(card, path)
    if checkpoint is not None:
        assert checkpoint.parent == shipped("models/checkpoints")
        assert checkpoint.is_file()
        assert card.measured


def test_cards_of_the_paper_ship():
    names = [card.name for card in list_models()]
    assert names == sorted(names)
    assert {
        f"deit-{size}-{mechanism}"
        for size in ("tiny", "tiny2", "small")
        for mechanism in ("softmax", "elliptical")
    } <= set(names)


def test_everything_reads_back(tmp_path, vector_card):
    card = vector_card(
        "elliptical_mean",
        seed=3,
        licence="CC0-1.0",
        paper='a "quoted" title, \\ and ü',
        notes="two\nlines",
        classes=tuple("abcdefghij"),
        preprocessing=Preprocessing(image_size=32, resize=36, interpolation="bilinear"),
        checkpoint=CheckpointFile(file="w.safetensors", sha256="0" * 64),
        training=Training(command="train --seed 3", recipe="micro", recipe_version=1, epochs=2),
        measured=(
            Measurement(data="test", n=3, correct=2, clean_accuracy=0.6667),
            Measurement(data="other", n=10, correct=0),
        ),
    )
    path = tmp_path / "card.toml"
    path.write_text(card_to_toml(card), encoding="utf-8")
    assert load_card(path) == card
    assert load_card(path).measured[0].accuracy == 2 / 3
    assert checkpoint_path(card, path) == tmp_path / "w.safetensors"


def test_the_shortest_card_reads_back(card_file, vector_card):
    card = load_card(card_file("softmax"))
    assert card == vector_card("softmax")
    assert checkpoint_path(card, card_file("softmax")) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name =", "nmae =", "name"),
        ('family = "elliptical_max"', "", "family: field required"),
        ("depth = 4", "depht = 4", "depth"),
        ("depth = 4", "depth = 0", "architecture.depth: input should be greater than or equal"),
        ("patch_size = 8", "patch_size = 5", "32 must be a multiple of patch_size 5"),
        ('mechanism = "elliptical"', 'mechanism = "eliptical"', "did you mean 'elliptical'"),
        ('scaling = "max"', 'scaling = "maximum"', "attention elliptical: scaling"),
        ('scaling = "max"', 'scaling = "max"\nscalling = "max"', "did you mean 'scaling'"),
        ("[attention.settings]", "[attention.setings]", "setings"),
        ("std = [\n    1.0,", "std = [\n    0.0,", "input.std.0: input should be greater than 0"),
        ("std = [\n    1.0,", "std = [", "one number for each of 3 channels"),
        ("mean = [\n    0.0,", "mean = [\n    nan,", "input.mean.0: input should be a finite"),
        (
            "[input]",
            "[preprocessing]\nimage_size = 28\n[input]",
            "the architecture's 32 and 3",
        ),
        ("[input]", "[preprocessing]\nimage_size = 32\nresize = 8\n[input]", "must be at least"),
        ("[input]", '[checkpoint]\nfile = "w"\nsha256 = "ab"\n[input]', "checkpoint.sha256"),
        ("[input]", '[checkpoint]\nfile = "w"\n[input]', "checkpoint.sha256: field required"),
        ("task =", 'classes = ["a"]\ntask =', "classes must be 10 names, got 1"),
        ('task = "image-c', 'task = "c', "task: input should be 'image-classification'"),
        ('name = "ell', 'name = "a,b', "name: string should match pattern"),
        ("[input]", '[[measured]]\ndata = "d"\nn = 2\ncorrect = 3\n[input]', "at most n = 2"),
        (
            "[input]",
            '[[measured]]\ndata = "d"\nn = 2\ncorrect = 1\nclean_accuracy = 0.6\n[input]',
            "must be correct / n = 0.5000",
        ),
        ("[input]", "[input", "is not valid TOML"),
    ],
)
def test_mistakes_are_named(old, new, message, tmp_path, vector_card):
    text = card_to_toml(vector_card()).replace("measured = []\n", "")
    assert old in text
    path = tmp_path / "card.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        load_card(path)
    assert str(path) in str(caught.value)


def test_an_unknown_section_gets_a_suggestion(tmp_path, vector_card):
    path = tmp_path / "card.toml"
    path.write_text(card_to_toml(vector_card()) + '\n[trainning]\ncommand = "x"\n')
    with pytest.raises(UnknownNameError, match="'trainning': did you mean 'training'"):
        load_card(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read card .*: No such file"):
        load_card(tmp_path / "card.toml")
    with pytest.raises(UsageError, match=r"cannot read card .*: Is a directory"):
        load_card(tmp_path)
    (tmp_path / "card.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not valid TOML"):
        load_card(tmp_path / "card.toml")

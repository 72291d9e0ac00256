"""Cards of language models: what is written reads back, what is wrong is named."""

import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.text import Vocabulary
from robustbench_elliptical.models import (
    AttentionChoice,
    CheckpointFile,
    LanguageCard,
    PerplexityMeasurement,
    Training,
    VocabularyFile,
    card_to_toml,
    list_models,
    load_card,
    shipped_cards,
)
from robustbench_elliptical.models.cards import (
    checkpoint_path,
    resolved_attention,
    vocabulary_path,
)
from robustbench_elliptical.models.language import build_language_model

SHIPPED = [card.name for card in list_models() if isinstance(card, LanguageCard)]
MEASURED = PerplexityMeasurement(
    data="sotu", split="test", n=9, perplexity=12.5, window=16, stride=8, prefix="<eos>"
)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_language_card(name):
    path = shipped_cards()[name]
    card = load_card(path)
    assert card.name == name
    if card.attention is not None:
        with torch.device("meta"):
            build_language_model(card.architecture, card.attention)
    if card.checkpoint is not None:
        assert checkpoint_path(card, path).parent == shipped("models/checkpoints")
        assert checkpoint_path(card, path).is_file()
        vocabulary = Vocabulary.load(vocabulary_path(card, path))
        vocabulary.check_fits(card.architecture.vocab_size, name)
        assert card.measured


def test_everything_reads_back(tmp_path, language_card):
    card = language_card(
        seed=3,
        licence="MIT",
        paper="arXiv 2406.13770",
        notes="two\nlines",
        vocabulary=VocabularyFile(file="words.txt", sha256="1" * 64),
        checkpoint=CheckpointFile(file="w.safetensors", sha256="0" * 64),
        training=Training(command="train --seed 3", epochs=2),
        measured=(MEASURED,),
    )
    path = tmp_path / "card.toml"
    path.write_text(card_to_toml(card), encoding="utf-8")
    assert load_card(path) == card
    assert checkpoint_path(card, path) == tmp_path / "w.safetensors"
    assert vocabulary_path(card, path) == tmp_path / "words.txt"
    assert resolved_attention(card)["metric_scope"] == "window"


def test_the_shortest_card_reads_back(language_card_file, language_card):
    path = language_card_file(None)
    card = load_card(path)
    assert card == language_card(None)
    assert card.task == "language-modelling"
    assert (checkpoint_path(card, path), vocabulary_path(card, path)) == (None, None)
    path.write_text(path.read_text().replace('family = "decoder"\n', ""))
    assert load_card(path) == card


def test_a_bigram_card_has_no_attention(tmp_path, language_card):
    sizes = {"family": "bigram", "vocab_size": 60, "pairs": 7}
    card = language_card(None, name="floor", architecture=sizes, attention=None)
    path = tmp_path / "floor.toml"
    path.write_text(card_to_toml(card), encoding="utf-8")
    assert load_card(path) == card
    assert resolved_attention(card) == {}
    with pytest.raises(UsageError, match=r"model floor has no attention, .* got metric"):
        resolved_attention(card, {"metric": "identity"})
    with pytest.raises(ValueError, match="a bigram model has no attention"):
        language_card(None, architecture=sizes, attention=AttentionChoice(mechanism="softmax"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('task = "language-modelling"', 'task = "language"', "task: input should be 'image-"),
        ('task = "language-modelling"\n', "", "architecture.*"),
        ('family = "decoder"', 'family = "encoder"', "'decoder', 'bigram'"),
        ("layers = 4", "layers = 0", "greater than or equal to 1, got 0"),
        ("vocab_size = 60", "vocab_size = 60\nheight = 3", "architecture.*height.*no known field"),
        ('metric_scope = "window"\n', "", r"must state metric_scope \(window or prefix\)"),
        ('scale = "none"\n', "", r"must state scale \(sqrt or none\)"),
        ('metric_scope = "window"', 'metric_scope = "all"', "elliptical: metric_scope"),
        ('mechanism = "elliptical"', 'mechanism = "eliptical"', "did you mean 'elliptical'"),
        ("perplexity = 12.5", "perplexity = 0.5", "measured.0.perplexity: .* equal to 1"),
        ('split = "test"', 'split = "dev"', "measured.0.split"),
        ('file = "w"', 'file = ""', "checkpoint.file"),
    ],
)
def test_mistakes_are_named(old, new, message, tmp_path, language_card):
    files = {"checkpoint": CheckpointFile(file="w", sha256="0" * 64), "measured": (MEASURED,)}
    text = card_to_toml(language_card(**files))
    assert old in text
    path = tmp_path / "card.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        load_card(path)
    assert str(path) in str(caught.value)


def test_a_decoder_must_state_its_attention(tmp_path, language_card_file):
    path = language_card_file(None)
    text = path.read_text()
    path.write_text(text[: text.index("[attention]")])
    with pytest.raises(UsageError, match="attention: a decoder's card must state the attention"):
        load_card(path)

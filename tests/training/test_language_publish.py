"""What training of a language model leaves: fp16 weights, shared words, a card that loads."""

import pytest
import torch
from safetensors.torch import load_file

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.models import PerplexityMeasurement, load_card, load_model
from robustbench_elliptical.training.language import (
    LanguageRecipe,
    LanguageTrainingJob,
    load_language_recipe,
    publish_language,
)
from robustbench_elliptical.training.language.trainer import build_model

COMMAND = "elliptical-robust train lm-micro --attention elliptical"
MEASURED = PerplexityMeasurement(
    data="sotu", n=99, perplexity=7.5, window=8, stride=4, prefix="<eos>"
)


@pytest.fixture
def vocabulary():
    return Vocabulary([EOS, "the", UNK, "of", "and", "people"], [9, 8, 7, 6, 5, 4])


@pytest.fixture
def job(tmp_path, vocabulary):
    shipped = load_language_recipe("lm-micro").model_dump()
    small = {"layers": 2, "d_model": 8, "num_heads": 2, "d_head": 4, "d_inner": 16}
    shipped["architecture"] |= {**small, "context_length": 8, "cutoffs": []}

    def make(variant="elliptical", seed=0, size=6):
        return LanguageTrainingJob(LanguageRecipe(**shipped), variant, seed, size, tmp_path)

    return make


def test_what_is_published_loads_and_claims_what_was_measured(job, vocabulary, tmp_path):
    network = build_model(job()).eval()
    bare = publish_language(job(), network, vocabulary, (), COMMAND)
    assert load_model(str(bare.card_path)).description.measured == ()
    published = publish_language(job(), network, vocabulary, [MEASURED], COMMAND)
    assert published[1:] == bare[1:]
    assert load_card(published.card_path) == published.card
    assert published.card.training.recipe == "lm-micro"
    assert published.card.training.command == COMMAND
    assert published.card.attention.settings["metric_scope"] == "prefix"
    model = load_model(str(published.card_path))
    assert model.vocabulary.words == vocabulary.words
    assert model.vocabulary.counts.tolist() == vocabulary.counts.tolist()
    assert model.description.claimed_measurement("sotu", "test", window=8, stride=4) == MEASURED
    tokens = torch.tensor([[0, 1, 3, 4, 5, 2, 1, 3]])
    with torch.no_grad():
        shipped, trained = (each.token_losses(tokens, tokens) for each in (model, network))
    torch.testing.assert_close(shipped, trained, rtol=1e-3, atol=1e-3)
    stored = load_file(published.checkpoint_path)
    assert "crit.out_layers.0.weight" not in stored
    assert stored["word_emb.emb_layers.0.weight"].dtype == torch.float16
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "lm-micro-elliptical.safetensors",
        "lm-micro-elliptical.toml",
        "sotu.vocab.txt",
    ]


def test_words_are_shared_if_they_are_equal(job, vocabulary, tmp_path):
    for each in (job(), job("softmax"), job(seed=1)):
        publish_language(each, build_model(each), vocabulary, (), COMMAND)
    before = sorted(tmp_path.iterdir())
    assert len(before) == 7
    another = Vocabulary([EOS, "the", UNK, "of", "and", "other"])
    with pytest.raises(UsageError, match=r"sotu\.vocab\.txt differs from the one"):
        publish_language(job(seed=2), build_model(job(seed=2)), another, (), COMMAND)
    with pytest.raises(UsageError, match="weights are for 9 words but the vocabulary has 6"):
        publish_language(job(size=9), build_model(job(size=9)), vocabulary, (), COMMAND)
    assert sorted(tmp_path.iterdir()) == before

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.models import EvaluatedLanguageModel, WordEncoder
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model

WORDS = [EOS, UNK, "the", "of", ".", "union", "state", "people", "law", "war", "peace", "AAA"]


@pytest.fixture
def vocabulary():
    return Vocabulary(WORDS, range(40, 40 - len(WORDS), -1))


@pytest.fixture
def lines():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[2:11], size=size)) for size in (31, 9, 17, 25, 40, 12, 21, 8)]


@pytest.fixture
def wikitext(tmp_path, lines):
    """Four articles of two lines."""
    folder = tmp_path / "wikitext"
    folder.mkdir()
    articles = [
        f" = Title {number} = \n {lines[2 * number]} \n {lines[2 * number + 1]} \n"
        for number in range(4)
    ]
    for split in ("train", "valid", "test"):
        (folder / f"wiki.{split}.tokens").write_text("".join(articles))
    return f"wikitext:{folder}"


@pytest.fixture
def build(vocabulary):
    def make(name="tiny", mechanism="softmax", seed=0, **settings):
        torch.manual_seed(seed)
        architecture = DecoderArchitecture(
            vocab_size=len(WORDS),
            layers=2,
            d_model=8,
            num_heads=2,
            d_head=4,
            d_inner=16,
            context_length=8,
        )
        choice = AttentionChoice(mechanism=mechanism, settings=settings)
        network = build_language_model(architecture, choice)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        encoder = WordEncoder(vocabulary)
        return EvaluatedLanguageModel(network.eval(), encoder, context_length=8, name=name)

    return make

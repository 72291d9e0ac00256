"""A language model is held against its perplexity, document by document."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.gate import Rules, freeze, judge, read_baseline, write_baseline
from robustbench_elliptical.gate.ratio import LEAST_DOCUMENTS
from robustbench_elliptical.models import (
    AttentionChoice,
    EvaluatedLanguageModel,
    LanguageCard,
    WordEncoder,
    card_to_toml,
)
from robustbench_elliptical.models.language import DecoderArchitecture, build_language_model

WORDS = [EOS, UNK, "the", "of", ".", "union", "state", "people", "law", "war", "peace", "AAA"]
VOCABULARY = Vocabulary(WORDS, range(40, 40 - len(WORDS), -1))


class Successor(nn.Module):
    """Expects the words of the vocabulary in their order."""

    def __init__(self, noise):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        size = len(WORDS)
        expected = 3 * torch.eye(size).roll(1, dims=1)
        disturbed = expected + noise * torch.randn(size, size, generator=generator)
        self.table = nn.Parameter(disturbed)

    def token_losses(self, tokens, targets, positions=None):
        if positions is not None:
            tokens, targets = tokens[:, positions], targets[:, positions]
        logits = self.table[tokens].transpose(1, 2)
        return nn.functional.cross_entropy(logits, targets, reduction="none")


@pytest.fixture
def evaluated(tmp_path):
    """Return the evaluation of a model with this much noise on its weights."""
    folder = tmp_path / "wikitext"
    folder.mkdir()
    articles = [
        f" = Title {number} = \n {' '.join((WORDS[2:11] * 5)[number:])} \n" for number in range(20)
    ]
    for split in ("train", "valid", "test"):
        (folder / f"wiki.{split}.tokens").write_text("".join(articles))
    settings = EvaluationSettings(
        attacks=("word-swap",), rates=("5%",), data=(f"wikitext:{folder}",), limit=None
    )
    encoder = WordEncoder(VOCABULARY)

    def run(noise, **changes):
        model = EvaluatedLanguageModel(Successor(noise), encoder, context_length=8, name="lm")
        return evaluate(settings.model_copy(update=changes), models=[model])

    return run


@pytest.fixture
def verdicts(evaluated, tmp_path):
    write_baseline(tmp_path / "base.json", freeze(evaluated(0.0)))
    baseline = read_baseline(tmp_path / "base.json")

    def decide(noise, **changes):
        reference = baseline.results.language.models[0]
        return judge(baseline, evaluated(noise, **changes), reference, Rules())

    return decide


def test_planted_cases(verdicts):
    for noise, expected, code in ((3.0, "regressed", 1), (1e-4, "pass", 0), (0.0, "pass", 0)):
        report = verdicts(noise)
        assert [each.title for each in report.checks] == ["text clean", "text word-swap 5 %"]
        assert {each.verdict for each in report.checks} == {expected}
        assert {each.measure for each in report.checks} == {"perplexity"}
        assert report.exit_code == code
        assert report.same_weights == (noise == 0)


def test_too_few_documents_are_inconclusive(evaluated):
    baseline = freeze(evaluated(0.0, limit=3))
    reference = baseline.results.language.models[0]
    report = judge(baseline, evaluated(1e-4, limit=3), reference, Rules())
    assert report.exit_code == 3
    assert {(each.verdict, each.needed) for each in report.checks} == {
        ("inconclusive", LEAST_DOCUMENTS)
    }


def test_the_command_line_takes_language_models(elliptical_robust, tmp_path):
    sizes = {"layers": 1, "d_model": 8, "num_heads": 2, "d_head": 4, "d_inner": 8}
    architecture = DecoderArchitecture(vocab_size=len(WORDS), context_length=8, **sizes)
    choice = AttentionChoice(mechanism="softmax")
    card = LanguageCard(name="lm", family="lm", architecture=architecture, attention=choice)
    (tmp_path / "lm.toml").write_text(card_to_toml(card))
    torch.manual_seed(0)
    network = build_language_model(architecture, choice)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    save_file(state, tmp_path / "lm.safetensors")
    VOCABULARY.save(tmp_path / "words.txt")
    (tmp_path / "story.txt").write_text(" ".join(WORDS[2:11] * 5))
    model = "lm,card=lm.toml,checkpoint=lm.safetensors,vocabulary=words.txt"
    run = ("eval", "--model", model, "--data", "text:story.txt", "--attack", "clean", "--quiet")
    assert elliptical_robust(*run, "--output", "run")[0] == 0
    assert elliptical_robust("baseline", "run", "--output", "base.json")[0] == 0
    check = ("check", model, "--baseline", "base.json", "--json")
    code, out, _ = elliptical_robust(*check)
    assert (code, json.loads(out)["checks"][0]["title"]) == (0, "text clean")
    (tmp_path / "moved.txt").write_text("the " * 45)
    code, _, error = elliptical_robust(*check, "--data", "text:moved.txt")
    assert code == 2
    assert "data hash" in error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 4}, "setting window: None then, 4 now"),
        ({"prefix": False}, "setting prefix: True then, False now"),
        ({"rates": ("10%",)}, "attack word-swap rates: [0.05] then, [0.1] now"),
        ({"document_words": 20}, "data hash"),
        ({"seed": 1}, "setting seed: 0 then, 1 now"),
    ],
)
def test_another_reading_is_refused(verdicts, changes, message):
    with pytest.raises(UsageError) as refused:
        verdicts(0.0, **changes)
    assert message in str(refused.value)

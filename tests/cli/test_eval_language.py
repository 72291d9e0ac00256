"""`eval` on the language models that ship, cut short."""

import json
import math

import pytest

from robustbench_elliptical.results import read_results

SHORT = ("--limit", "3", "--document-words", "60", "--rate", "5%", "--quiet")


def test_word_swap_alone_evaluates_the_shipped_models_beside_the_floor(elliptical_robust, tmp_path):
    code, out, _ = elliptical_robust("eval", "--attack", "word-swap", *SHORT, "--output", "a")
    assert code == 0
    results, samples, documents, _ = read_results(tmp_path / "a")
    names = [each.name for each in results.language.models]
    assert names == [
        "lm-micro-softmax",
        "lm-micro-elliptical",
        "lm-micro-elliptical-released",
        "kneser-ney-sotu",
    ]
    assert all(name in out for name in names)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "documents.csv",
        "results.json",
        "table.md",
    ]
    assert len(samples) == 0
    assert len(documents) == 4 * 2 * 3
    perplexities = {
        each.model: each.perplexity for each in results.language.summaries if not each.rate
    }
    floor = perplexities.pop("kneser-ney-sotu")
    assert all(each < floor for each in perplexities.values())
    flagged = {each.model for each in results.findings if each.id == "sees-the-future"}
    assert flagged == {"lm-micro-elliptical-released"}
    assert f"{floor:.2f}" in out
    for protocol in results.language.protocols:
        assert (protocol.window, protocol.stride, protocol.prefix) == (96, 24, "<eos>")
    table = (tmp_path / "a" / "table.md").read_text()
    for each in results.language.summaries:
        assert f"{each.perplexity:.3f}" in table


def test_two_tasks_give_two_tables_in_one_result(elliptical_robust, tmp_path):
    models = ("--model", "deit-micro-softmax", "--model", "lm-micro-softmax")
    attacks = ("--attack", "fgsm", "--attack", "char-noise")
    code, out, _ = elliptical_robust("eval", *models, *attacks, *SHORT, "--json", "--output", "a")
    assert code == 0
    results, samples, documents, _ = read_results(tmp_path / "a")
    assert json.loads(out) == results.model_dump()
    assert [task.task for task in results.tasks] == ["image-classification", "language-modelling"]
    assert set(samples["attack"]) == {"clean", "noise", "fgsm"}
    assert set(documents["attack"]) == {"clean", "char-noise"}


def test_a_control_of_the_metric_is_another_model(elliptical_robust, tmp_path):
    models = ("--model", "lm-micro-elliptical", "--model", "lm-micro-elliptical,metric=identity")
    code, *_ = elliptical_robust("eval", *models, "--attack", "clean", *SHORT, "--output", "a")
    assert code == 0
    results = read_results(tmp_path / "a").results
    ratio = next(each for each in results.language.comparisons if "identity" in each.model)
    assert ratio.ratio > 1
    assert math.isfinite(ratio.low)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--model", "deit-micro-softmax", "--attack", "word-swap"),
            "attack word-swap is for text",
        ),
        (("--model", "lm-micro-softmax", "--attack", "pgd"), "attack pgd is for images"),
        (("--model", "lm-micro-softmax", "--data", "text:missing.txt"), "missing.txt"),
        (("--attack", "word-swap", "--rate", "5"), "did you mean 0.05"),
        (("--attack", "word-swap", "--stride", "97"), "stride must be at least 1 and at most"),
        (("--attack", "word-swap", "--document-words", "1"), "--document-words"),
        (("--attack", "adversarial-swap", "--context", "stream"), "needs context=document"),
        (("--model", "kneser-ney-sotu", "--attack", "adversarial-swap"), "kneser-ney-sotu"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(elliptical_robust, tmp_path, words, message):
    code, out, error = elliptical_robust("eval", *words, "--output", "a")
    assert code == 2
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert out == ""
    assert not (tmp_path / "a").exists()

import math

import numpy as np
import pytest
import torch

from robustbench_elliptical.attacks.text import word_swap
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import load_text
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.evaluation.text.oracle import DocumentOracle
from robustbench_elliptical.evaluation.text.plan import plan_swaps
from robustbench_elliptical.evaluation.text.scoring import Protocol, score


def run(models, data, **changes):
    settings = EvaluationSettings(
        data=data, **{"attacks": ["word-swap"], "rates": ["10%", "50%"], **changes}
    )
    return evaluate(settings, models=models)


def by_hand(model, words, swapped, window=8, stride=2):
    """Sum of losses and of those of clean words, window by window."""
    tokens = [model.vocabulary.eos, *model.vocabulary.encode(words).tolist()]
    losses = {}
    for start in range(0, len(words), stride):
        stop = min(start + window, len(words))
        inputs = torch.tensor([tokens[start:stop]])
        targets = torch.tensor([tokens[start + 1 : stop + 1]])
        with torch.no_grad():
            found = model.network.token_losses(inputs, targets)[0].tolist()
        for place in range(start, stop):
            losses.setdefault(place, found[place - start])
        if stop == len(words):
            break
    clean = [loss for place, loss in losses.items() if not swapped[place]]
    return sum(losses.values()), sum(clean), len(clean)


def test_every_row_is_what_a_plain_loop_finds(build, wikitext):
    model = build()
    results, _, rows, _ = run([model], wikitext, seed=5)
    documents = {each.id: each.words for each in load_text(wikitext)}
    assert len(rows) == 4 * 3
    for row in rows.itertuples():
        words = documents[row.document]
        found = word_swap(words, row.rate, row.document, seed=5)
        loss, clean_loss, clean = by_hand(model, found.words, found.swapped)
        assert row.outcome == "scored"
        assert row.targets == row.words == len(words)
        assert (row.clean_targets, row.swapped) == (clean, found.swapped.sum())
        assert row.loss == pytest.approx(loss, rel=1e-5)
        assert row.clean_target_loss == pytest.approx(clean_loss, rel=1e-5)
    for each in results.language.summaries:
        of_unit = rows[(rows["attack"] == each.attack) & (rows["rate"] == each.rate)]
        assert each.perplexity == pytest.approx(
            math.exp(of_unit["loss"].sum() / of_unit["targets"].sum())
        )
        assert each.clean_target_perplexity == pytest.approx(
            math.exp(of_unit["clean_target_loss"].sum() / of_unit["clean_targets"].sum())
        )
        assert each.byte_perplexity == pytest.approx(
            math.exp(of_unit["loss"].sum() / of_unit["bytes"].sum())
        )
        assert each.low < each.perplexity < each.high
        assert each.realised_rate == pytest.approx(each.rate, abs=0.05)


def test_batch_size_and_grouping_change_nothing(build, wikitext):
    frames = [run([build()], wikitext, batch_size=size)[2] for size in (1, 3, 100)]
    keys = ["attack", "rate", "document"]
    first, *others = (each.sort_values(keys).reset_index(drop=True) for each in frames)
    for other in others:
        assert first.drop(columns=["loss", "clean_target_loss"]).equals(
            other.drop(columns=["loss", "clean_target_loss"])
        )
        np.testing.assert_allclose(first["loss"], other["loss"], rtol=1e-6)


def test_a_stream_scores_the_same_targets_with_more_context(build, wikitext):
    model = build()
    stream = run([model], wikitext, context="stream", attacks=["clean"])[2]
    apart = run([model], wikitext, attacks=["clean"])[2]
    assert stream["targets"].tolist() == apart["targets"].tolist()
    assert stream["loss"][1] != pytest.approx(apart["loss"][1], rel=1e-3)
    words = [word for each in load_text(wikitext) for word in each.words]
    total, _, _ = by_hand(model, words, [False] * len(words))
    assert stream["loss"].sum() == pytest.approx(total, rel=1e-6)


def test_without_a_prefix_the_first_word_is_not_scored(build, wikitext):
    rows = run([build()], wikitext, prefix=False, attacks=["clean"])[2]
    with_prefix = run([build()], wikitext, attacks=["clean"])[2]
    assert (rows["targets"] == with_prefix["targets"] - 1).all()
    stream = run([build()], wikitext, prefix=False, context="stream", attacks=["clean"])[2]
    assert (with_prefix["targets"] - stream["targets"]).tolist() == [1, 0, 0, 0]


def test_limit_and_document_words(build, wikitext):
    results, _, rows, _ = run([build()], wikitext, limit=2, document_words=10, attacks=["clean"])
    assert rows["targets"].tolist() == [10, 10]
    again = run([build()], wikitext, limit=2, document_words=10, attacks=["clean"])[2]
    assert rows["document"].tolist() == again["document"].tolist()
    assert results.language.data[0].documents == 2
    assert results.language.data[0].words == 20


def test_models_are_compared_on_the_same_documents(build, wikitext):
    results, _, rows, _ = run([build("a"), build("b", seed=1), build("c")], wikitext)
    compared = {(each.model, each.rate): each for each in results.language.comparisons}
    assert {model for model, _ in compared} == {"b", "c"}
    assert compared["c", 0.1].ratio == compared["c", 0.1].low == compared["c", 0.1].high == 1
    summed = rows[rows["rate"] == 0.5].groupby("model")[["loss", "words"]].sum()
    mean = summed["loss"] / summed["words"]
    assert compared["b", 0.5].ratio == pytest.approx(math.exp(mean["b"] - mean["a"]))
    assert len({each.sha256 for each in results.language.data}) == 1


def ids(results):
    return {each.id for each in results.findings}


def test_a_model_that_sees_the_future_is_flagged(build, wikitext):
    settings = {"scaling": "max", "scale": "sqrt"}
    window = build("window", "elliptical", metric_scope="window", **settings)
    prefix = build("prefix", "elliptical", metric_scope="prefix", **settings)
    found = run([window, prefix, build()], wikitext, attacks=["clean"]).results.findings
    flagged = {each.model: each.severity for each in found if each.id == "sees-the-future"}
    assert flagged == {"window": "error"}
    found = run([window], wikitext, attacks=["clean"], stride=1).results.findings
    assert [each.severity for each in found if each.id == "sees-the-future"] == ["warning"]


def test_a_model_that_answers_nan_has_failed_documents_and_no_perplexity(build, wikitext):
    model = build()
    with torch.no_grad():
        model.network.word_emb.weight[5] = math.nan
    results, _, rows, _ = run([model], wikitext)
    assert set(rows["outcome"]) == {"failed"}
    assert rows["loss"].isna().all()
    assert rows["reason"].str.contains("not finite").all()
    for each in results.language.summaries:
        assert (each.failed, each.documents) == (4, 4)
        assert each.perplexity is each.low is each.word_perplexity is None
    assert "failed-documents" in ids(results)


def test_a_text_that_swaps_make_easier_is_flagged(build, wikitext):
    model = build()
    with torch.no_grad():  # AAA is expected everywhere
        model.network.crit.out_layers[0].bias[11] = 9
    results = run([model], wikitext).results
    flagged = {each.rate for each in results.findings if each.id == "contamination-helps"}
    assert flagged == {0.1, 0.5}
    assert "contamination-helps" not in ids(run([build()], wikitext, attacks=["clean"]).results)


def test_adversarial_swaps_are_stronger_than_their_control(build, wikitext):
    results, _, rows, _ = run(
        [build()], wikitext, attacks=["adversarial-swap:budget=12"], rates=["10%", "20%"]
    )
    control = "word-swap(replacement=random-word)"
    found = {(each.attack, each.rate): each for each in results.language.summaries}
    label = next(each.label for each in results.language.attacks if each.knowledge != "none")
    for rate in (0.1, 0.2):
        attacked, random = found[label, rate], found[control, rate]
        assert attacked.perplexity > random.perplexity
        swaps = rows[rows["rate"] == rate].groupby("attack")["swapped"].sum()
        assert swaps[label] <= swaps[control]  # words outside the vocabulary are left alone
        assert attacked.backwards > 0
    assert found[label, 0.2].perplexity > found[label, 0.1].perplexity
    assert "no-stronger-than-random" not in ids(results)
    first = rows[rows["attack"] == label].iloc[0]
    windows = len(range(0, first["targets"] - 8, 2)) + 1
    assert first["forwards"] <= 13 * windows


def protocol(model, **changes):
    options = {"window": None, "stride": 3, "context": "document", "prefix": True}
    return Protocol.of(model, **{**options, **changes}, batch_size=4, device="cpu")


@pytest.mark.parametrize("prefix", [True, False])
def test_the_oracle_answers_for_the_windows_that_are_scored(build, prefix):
    model = build()
    model.network.double()
    oracle = DocumentOracle(model, protocol(model, prefix=prefix))
    tokens = np.random.default_rng(1).integers(0, 12, size=21)
    losses = oracle.losses(tokens)
    (direct,) = score(model, [tokens], protocol(model, prefix=prefix))
    np.testing.assert_allclose(losses[direct.skipped :], direct.losses)
    assert oracle.forwards == direct.forwards
    places = np.array([1, 9, 20])
    everything = oracle.target_log_probabilities(tokens, places)
    np.testing.assert_allclose(-everything[np.arange(3), tokens[places]], losses[places], rtol=1e-6)
    np.testing.assert_allclose(np.exp(everything).sum(-1), 1, rtol=1e-6)
    weights = np.ones(21)
    again, gradient = oracle.gradient(tokens, weights)
    np.testing.assert_allclose(again, losses)
    assert gradient.shape == (21, 8)
    assert not gradient[-1].any()
    change = np.zeros_like(gradient)
    change[4] = oracle.word_vectors[(tokens[4] + 1) % 12] - oracle.word_vectors[tokens[4]]
    other = tokens.copy()
    other[4] = (tokens[4] + 1) % 12
    moved = oracle.losses(other)
    # A whole swap is no infinitesimal step, but the direction must not be that of another token.
    downstream = np.arange(21) != 4
    assert np.any(moved[downstream] != losses[downstream])
    assert oracle.backwards == oracle.forwards - 3 * direct.forwards


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rates": ["5"]}, "rate must be a number between 0 and 1, got 5: did you mean 0.05"),
        ({"rates": ["-1%"]}, "rate must be a number between 0 and 1"),
        ({"rates": ["abc"]}, "rate must be a number between 0 and 1, got 'abc'"),
        ({"stride": 9}, "stride must be at least 1 and at most the window of 8 tokens, got 9"),
        ({"attacks": ["word-swap", "word-swap:rate=10%"]}, "given twice at the same rate"),
        ({"attacks": ["adversarial-swap"], "context": "stream"}, "needs context=document"),
        ({"attacks": ["wordswap"]}, "did you mean 'word-swap'"),
    ],
)
def test_bad_input(build, wikitext, changes, message):
    with pytest.raises(UsageError, match=message):
        run([build()], wikitext, **changes)


def test_the_control_comes_with_worst_cases_only():
    assert [each.choice.label for each in plan_swaps(["word-swap"], ["1%"])] == ["word-swap"]
    planned = plan_swaps(["adversarial-swap:rate=3%", "word-swap"], ["1%", "2%"])
    assert [(each.choice.name, each.rates) for each in planned] == [
        ("word-swap", (0.03,)),
        ("adversarial-swap", (0.03,)),
        ("word-swap", (0.01, 0.02)),
    ]

"""What a report says: who is best, by how much, over how many seeds, and which findings stand."""

import math

import numpy as np
import pandas as pd
import pytest

from robustbench_elliptical.reports.contents.accuracy import best_models
from robustbench_elliptical.reports.contents.pooling import Variance, estimate, families, spread
from robustbench_elliptical.reports.contents.wording import (
    count,
    number,
    p_text,
    percent,
    signed,
    slug,
    span,
)
from robustbench_elliptical.results import holm, mcnemar

EIGHT = (8 / 255,)


@pytest.fixture
def section(make, tmp_path, built):
    """The section about some image classifiers."""

    def build(names=("a", "b"), seeds=None, **options):
        records = [
            make.model_record(name, seed=seed, family=name.split("-")[0])
            for name, seed in zip(names, seeds or [None] * len(names), strict=True)
        ]
        options.setdefault("epsilons", EIGHT)
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        make.write(folder, make.image_evaluation(records, **options))
        (found,) = built(folder).sections
        return found

    return build


def bold(section):
    frame = section.frames["accuracy"]
    return {(row.model, row.attack) for row in frame[frame["best"]].itertuples()}


def test_the_best_is_bold_only_where_the_test_says_so(section):
    assert bold(section(strengths=[0.2, 0.7], n=200)) == {
        ("b", "fgsm"),
        ("b", "pgd"),
        ("b", "worst-case"),
    }
    assert bold(section(strengths=[0.2, 0.21], n=200)) == set()
    assert bold(section(strengths=[0.2, 0.7], n=12)) == set()
    assert bold(section(("a",), strengths=[0.5])) == set()


def test_who_ties_for_the_best_is_not_bold(section):
    found = section(("a", "b", "c"), strengths=[0.1, 0.7, 0.7], n=300)
    assert bold(found) == set()
    frame = found.frames["differences"]
    beaten = frame[(frame["model_a"] == "a") & (frame["attack"] == "pgd")]
    assert (beaten["p_holm"] < 0.05).all()


def test_a_missing_comparison_leaves_nobody_the_best():
    frame = pd.DataFrame(
        {"model": ["a", "b", "c"], "attack": "pgd", "norm": "linf", "epsilon": 0.1}
    )
    compared = pd.DataFrame(
        {"attack": "pgd", "norm": "linf", "epsilon": 0.1, "model_a": ["a"], "model_b": ["b"],
         "difference": [0.5], "p_holm": [0.001]}
    )  # fmt: skip
    assert best_models(frame, compared).tolist() == [False, False, False]
    assert best_models(frame[:2], compared).tolist() == [True, False]


def test_differences_are_mcnemars_and_corrected_together(section):
    frame = section(("a", "b", "c"), strengths=[0.2, 0.4, 0.6], n=100).frames["differences"]
    assert len(frame) == 3 * 4  # clean, fgsm, pgd, worst case; no control
    assert "noise" not in set(frame["attack"])
    np.testing.assert_allclose(frame["p_holm"], holm(frame["p_value"]))
    for row in frame.itertuples():
        assert row.difference == pytest.approx((row.only_a - row.only_b) / row.n)
        assert row.low <= row.difference <= row.high
        first = np.repeat([True, False], [row.only_a, row.only_b])
        assert row.p_value == mcnemar(first, ~first).p_value if len(first) else 1.0


def test_only_shared_samples_are_compared(section):
    found = section(strengths=[0.2, 0.7], n=100, reached={"b": 60}, complete=False)
    assert set(found.frames["differences"]["n"]) == {60}
    accuracy = found.frames["accuracy"]
    assert accuracy.groupby("model")["n"].unique().map(list).to_dict() == {"a": [100], "b": [60]}
    assert any("interrupted" in warning for warning in found.warnings)


def test_seeds_are_pooled_with_their_spread(section):
    found = section(
        ("a-0", "a-1", "a-2", "b-0", "b-1"),
        seeds=[0, 1, 2, 0, 1],
        strengths=[0.2, 0.3, 0.4, 0.7, 0.75],
        n=200,
    )
    pooled, accuracy = found.frames["seeds"], found.frames["accuracy"]
    row = pooled[(pooled["family"] == "a") & (pooled["attack"] == "pgd")].iloc[0]
    shares = accuracy[(accuracy["attack"] == "pgd") & accuracy["model"].str.startswith("a")]
    assert row["seeds"] == 3
    assert row["n"] == 200
    assert row["mean"] == pytest.approx(shares["accuracy"].mean())
    assert row["sd_between_seeds"] == pytest.approx(shares["accuracy"].std())
    naive = 1.96 * math.sqrt(row["mean"] * (1 - row["mean"]) / 600)
    assert row["high"] - row["low"] > 2 * naive
    compared = found.frames["seed-differences"]
    assert set(compared["family_a"] + compared["family_b"]) == {"ab"}
    assert (compared["low"] <= compared["difference"]).all()
    names = [table.name for table in found.tables]
    assert "fashion-mnist-seeds" in names
    assert "fashion-mnist-seed-differences" in names


def test_one_seed_or_none_is_no_family(section):
    for seeds in ([0, 0], [None, 1], [None, None]):
        found = section(("a-0", "a-1"), seeds=seeds, strengths=[0.2, 0.3])
        assert "seeds" not in found.frames


def test_models_with_other_settings_are_no_seeds_of_each_other(make):
    class Entry:
        def __init__(self, seed, **description):
            self.record = make.model_record("a", seed=seed, family="a", **description)

    alike = [Entry(0), Entry(1)]
    assert [family.label for family in families(alike)] == ["a"]
    assert families([Entry(0), Entry(1, attention_settings={"scaling": "mean"})]) == []
    through = [Entry(each, attention_overrides={"gradient_mode": "through"}) for each in (0, 1)]
    assert [family.label for family in families(through)] == ["a,gradient_mode=through"]


def test_the_pooled_interval_is_students_for_one_source():
    values = np.array([1.0, 2.0, 4.0])
    part = spread(values)
    low, high, _ = estimate(values.mean(), [part])
    half = 4.302652729911275 * values.std(ddof=1) / math.sqrt(3)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert estimate(0.0, [Variance(0.0, 2)]) == (0.0, 0.0, 1.0)


def test_the_pooled_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        samples = rng.normal(0, 1, 100)
        seeds = rng.normal(0, 0.1, 3)
        right = samples[None] + seeds[:, None] + rng.normal(0, 0.5, (3, 100))
        low, high, _ = estimate(right.mean(), [spread(right.mean(1)), spread(right.mean(0))])
        hits += low <= 0 <= high
    assert hits / 400 >= 0.93


def test_perplexities_are_compared_in_pairs(make, tmp_path, built):
    records = [
        make.model_record(name, task="language-modelling", seed=seed, family=name[:-1])
        for name, seed in (("a0", 0), ("a1", 1), ("b0", 0), ("b1", 1))
    ]
    evaluation = make.text_evaluation(records, means=[4.0, 4.01, 3.8, 3.82])
    (found,) = built(make.write(tmp_path / "run", evaluation)).sections
    frame = found.frames["differences"]
    assert len(frame) == 6 * 4
    row = frame[(frame["model_a"] == "a0") & (frame["model_b"] == "b0")].iloc[0]
    assert row["ratio"] == pytest.approx(math.exp(0.2), rel=0.02)
    assert row["low"] > 1
    assert row["p_holm"] < 0.05
    families = found.frames["seed-differences"]
    assert families["ratio"].iloc[0] == pytest.approx(math.exp(0.195), rel=0.02)
    pooled = found.frames["seeds"]
    assert set(pooled["family"]) == {"a", "b"}
    assert ((pooled["low"] < pooled["word_perplexity"]) & (pooled["lowest"] > 0)).all()


def test_other_tokens_are_compared_by_word_and_other_windows_are_never_best(make, tmp_path, built):
    records = [make.model_record(name, task="language-modelling") for name in ("a", "b")]
    evaluation = make.text_evaluation(records, means=[4.0, 3.5], units=["word", "subword"])
    (found,) = built(make.write(tmp_path / "run", evaluation)).sections
    assert found.frames["perplexity"].query("best")["model"].unique().tolist() == ["b"]
    assert "sotu-test-perplexity-word" in [table.name for table in found.tables]
    folders = [
        make.write(
            tmp_path / str(place),
            make.text_evaluation([record], means=[4 - place], window=256 * (1 + place)),
        )
        for place, record in enumerate(records)
    ]
    (found,) = built(*folders).sections
    assert (found.frames["differences"]["p_value"] < 0.01).all()
    assert not found.frames["perplexity"]["best"].any()
    (table,) = [each for each in found.tables if each.name.endswith("differences")]
    assert {row[2].detail for row in table.rows} == {"measured in another way"}


def test_one_document_has_no_interval_and_no_test(make, tmp_path, built):
    records = [make.model_record(name, task="language-modelling") for name in ("a", "b")]
    evaluation = make.text_evaluation(records, means=[4.0, 3.5], documents=2)
    task = evaluation.results.language
    for summary in task.summaries:
        summary.documents, summary.low, summary.high = 1, None, None
    rows = evaluation.documents
    rows = rows[rows["document"] == rows["document"].iloc[0]]
    for summary in task.summaries:
        own = rows[(rows["model"] == summary.model) & (rows["rate"] == summary.rate)]
        summary.perplexity = float(np.exp(own["loss"].sum() / own["targets"].sum()))
    folder = make.write(tmp_path / "run", evaluation._replace(documents=rows))
    (found,) = built(folder).sections
    assert found.frames["differences"]["p_value"].isna().all()
    assert not found.frames["perplexity"]["best"].any()
    cells = [cell for table in found.tables for row in table.rows for cell in row]
    assert any(cell.detail == "no interval" for cell in cells)
    assert any(cell.text == "no test" for cell in cells)


def test_failed_documents(make, tmp_path, built):
    records = [make.model_record(name, task="language-modelling") for name in ("a", "b")]
    evaluation = make.text_evaluation(records, means=[4.0, 3.5], rates=(0.01,))
    rows = evaluation.documents
    bad = (rows["model"] == "b") & (rows["rate"] > 0)
    rows.loc[bad, ["outcome", "loss", "clean_target_loss"]] = ["failed", np.nan, np.nan]
    summary = evaluation.results.language.summaries[-1]
    summary.failed = summary.documents
    summary.perplexity = summary.low = summary.high = summary.word_perplexity = None
    summary.clean_target_perplexity = None
    (found,) = built(make.write(tmp_path / "run", evaluation)).sections
    (table,) = [each for each in found.tables if each.name == "sotu-test-perplexity-all"]
    assert table.rows[1][3].text == "failed"
    assert "12 failed" in table.rows[1][3].detail
    assert set(found.frames["differences"]["attack"]) == {"clean"}


def test_findings_stand_where_their_numbers_do(section, make):
    findings = [
        make.finding("a", epsilon=None, severity="notice"),
        make.finding("b", attack="pgd", epsilon=EIGHT[0], severity="error"),
        make.finding("a", attack=None, epsilon=None),
        make.finding("nobody"),
    ]
    found = section(strengths=[0.3, 0.5], findings=findings)
    assert [(each.mark, each.severity) for each in found.findings] == [
        ("F1", "error"),
        ("F2", "warning"),
        ("F3", "warning"),
        ("F4", "notice"),
    ]
    table = found.tables[0]
    marks = {
        (row[0].text, column.label): cell.marks
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if cell.marks
    }
    assert marks == {("b", "pgd"): ("F1",), ("a", "model"): ("F2",), ("a", "fgsm"): ("F4",)}
    assert [each.mark for each in found.unplaced()] == ["F3"]
    assert table.marks == ("F1", "F2", "F4")


def test_many_models_show_the_best_and_keep_the_rest(section):
    names = [f"m{place}" for place in range(8)]
    found = section(names, strengths=[0.1 * (1 + place) for place in range(8)], n=60)
    (table,) = [each for each in found.tables if each.name.endswith("-differences")]
    assert len(found.frames["differences"]) == 28 * 4
    assert len(table.rows) == 7 * 4
    assert "All 112 stand in the CSV and JSON files." in table.notes[1]


def test_clean_accuracy_alone(section):
    found = section(strengths=[0.3, 0.5], attacks=(), epsilons=())
    assert [table.name for table in found.tables] == [
        "fashion-mnist-accuracy",
        "fashion-mnist-differences",
        "fashion-mnist-cost",
    ]
    assert found.tables[0].title == "Accuracy in percent, without attack"
    assert found.figures == ()


def test_wording():
    assert percent(0.61538, 200) == "61.5"
    assert percent(0.61538, 50_000) == "61.54"
    assert signed(0.05, 10) == "+5.0"
    assert signed(-0.05, 10) == "-5.0"
    assert [number(each) for each in (52.594, 1e6, math.inf, None)] == [
        "52.59",
        "1.00e+06",
        "inf",
        "failed",
    ]
    assert span(1.0, None) == "no interval"
    assert [count(each) for each in (21.0, 20.44, 1301.2)] == ["21", "20.4", "1301"]
    assert [p_text(each) for each in (0.0001, 0.0312, 1.0)] == ["< 0.001", "0.031", "1.000"]
    assert slug("Imágenes: /a b/<x>") == "imagenes-a-b-x"
    assert slug("模型") == "x"

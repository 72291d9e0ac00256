"""Tables of many models have a row a model, so that they fit a terminal."""

import io

import pytest
from rich.console import Console

from robustbench_elliptical.cli.tables import accuracy_tables, perplexity_tables
from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports import format_rate, percent, perplexity_text
from robustbench_elliptical.results import read_results

CONTROLS = ["", ",metric=identity", ",metric=random", ",metric=constant", ",gradient_mode=through"]


def cells(table):
    """Return a table as shown: its title, its header and its rows by first cell."""
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(table)
    lines = console.export_text().splitlines()
    split = [[cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]] for line in lines]
    header, *rows = [row for row in split if row]
    return lines[0].strip(), header, {row[0]: row for row in rows}


@pytest.fixture
def run(elliptical_robust, tiny, data, tmp_path):
    def call(*words, models=5):
        named = [word for each in CONTROLS[:models] for word in ("--model", tiny + each)]
        code, _, err = elliptical_robust(
            "eval", *named, "--data", data, "--output", "out", "--limit", "9", *words
        )
        assert (code, err) == (0, "")
        return read_results(tmp_path / "out")[0].images

    return call


def test_many_models_are_rows_of_a_table_for_each_epsilon(run):
    results = run("--attack", "fgsm", "--attack", "pgd:steps=2", "--epsilon", "4/255",
                  "--epsilon", "8/255", "--attack", "fgsm:norm=l2,epsilon=1/2")  # fmt: skip
    tables = accuracy_tables(results)
    assert len(tables) == 3
    shown = 0
    for table in tables:
        title, header, rows = cells(table)
        assert list(rows) == [each.name for each in results.models]
        assert header[:2] == ["model", "clean"]
        for each in results.summaries:
            ball = f", {each.norm} epsilon {format_epsilon(each.epsilon)}"
            if each.norm is None or title.endswith(ball):
                assert rows[each.model][header.index(each.attack)] == percent(each)
                shown += 1
    assert shown == len(results.summaries) + 2 * len(results.models)


def test_up_to_four_models_are_columns(run):
    (table,) = accuracy_tables(run("--attack", "fgsm", models=4))
    _, header, rows = cells(table)
    assert header[1::2] == [f"tiny{each}" for each in CONTROLS[:4]]
    assert list(rows) == ["clean", "noise 8/255", "fgsm 8/255"]


def test_many_models_without_an_attack(run):
    results = run("--attack", "clean")
    (table,) = accuracy_tables(results)
    _, header, rows = cells(table)
    assert header == ["model", "clean"]
    assert [row[1] for row in rows.values()] == [percent(each) for each in results.summaries]


def test_an_attack_that_a_model_was_not_reached_by_is_not_run(run):
    results = run("--attack", "fgsm")
    kept = [each for each in results.summaries if each.model != "tiny" or each.attack == "clean"]
    (table,) = accuracy_tables(results.model_copy(update={"summaries": kept}))
    _, header, rows = cells(table)
    assert header == ["model", "clean", "noise", "fgsm"]
    assert rows["tiny"][2:] == ["not run", "not run"]
    assert "not run" not in rows["tiny,metric=identity"]


def test_many_language_models_are_rows_of_a_table_for_each_attack(elliptical_robust, tmp_path):
    words = [word for each in CONTROLS[1:4] for word in ("--model", f"lm-micro-elliptical{each}")]
    for name in ("lm-micro-softmax", "lm-micro-elliptical"):
        words += ["--model", name]
    for attack in ("word-swap", "word-swap:replacement=random-word"):
        words += ["--attack", attack]
    code, out, err = elliptical_robust(
        "eval", *words, "--limit", "2", "--document-words", "60", "--rate", "5%", "--rate", "10%",
        "--output", "out",
    )  # fmt: skip
    assert (code, err) == (0, "")
    results = read_results(tmp_path / "out")[0].language
    tables = perplexity_tables(results)
    assert len(tables) == 4
    for table, attack in zip(tables, [each.label for each in results.attacks], strict=False):
        title, header, rows = cells(table)
        assert title.endswith(f"; {attack}")
        assert list(rows) == [each.name for each in results.models]
        assert header == ["model", "clean", "5 %", "10 %"]
        for each in results.summaries:
            if each.attack in ("clean", attack):
                column = format_rate(each.rate) if each.rate else "clean"
                assert rows[each.model][header.index(column)] == perplexity_text(each)
    assert title in out

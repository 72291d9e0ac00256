"""The same numbers in every format, read back from the files."""

import csv
import io
import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from reading import (
    Page,
    check_latex,
    latex_cell,
    latex_rows,
    markdown_cell,
    markdown_tables,
    unescape_markdown,
)

from robustbench_elliptical.reports.contents.wording import number, p_text, percent, percent_range


@pytest.fixture(scope="module")
def page(report):
    return Page((report / "report.html").read_text())


@pytest.fixture(scope="module")
def document(report):
    return json.loads((report / "report.json").read_text())


def test_a_report_is_whole(report):
    files = {path.relative_to(report).as_posix() for path in report.rglob("*") if path.is_file()}
    assert {"report.html", "report.md", "report.tex", "report.json"} <= files
    assert "tables/fashion-mnist-accuracy.csv" in files
    assert "tables/fashion-mnist-accuracy-1.tex" in files
    for kind in ("png", "svg", "pdf"):
        assert f"figures/fashion-mnist-accuracy-linf-worst-case.{kind}" in files
        assert f"figures/sotu-test-perplexity-all-word-swap.{kind}" in files
    assert list(report.parent.iterdir()) == [report]


def test_html_and_markdown_show_the_same(report, page):
    tables = markdown_tables((report / "report.md").read_text())
    titles = list(page.captions.values())
    assert len(page.tables) >= 15
    for name, rows in page.tables.items():
        if titles.count(page.captions[name]) > 1:
            continue  # two blocks with tables of one title
        heading, *lines = tables[page.captions[name]]
        assert [unescape_markdown(cell) for cell in heading] == page.headings[name]
        assert [[markdown_cell(cell) for cell in line] for line in lines] == rows


def test_html_and_latex_show_the_same(report, page):
    for name, rows in page.tables.items():
        lines = latex_rows((report / "tables" / f"{name}.tex").read_text())
        found = []
        while lines:
            line = lines.pop(0)
            under = [""] * len(line)
            if lines and lines[0][0] == "" and any("scriptsize" in cell for cell in lines[0]):
                under = lines.pop(0)
            found.append([latex_cell(*pair) for pair in zip(line, under, strict=True)])
        assert found == rows, name


def test_csv_and_json_hold_the_same(report, document):
    for section in document["sections"]:
        for name, rows in section["tables"].items():
            text = (report / "tables" / f"{section['name']}-{name}.csv").read_text()
            for read, row in zip(csv.DictReader(io.StringIO(text)), rows, strict=True):
                assert list(read) == list(row)
                for key, value in row.items():
                    if isinstance(value, float):
                        assert float(read[key]) == value
                    else:
                        assert read[key] == ("" if value is None else str(value))


def test_the_page_shows_the_accuracies_of_the_data(page, document):
    section = document["sections"][0]
    shown = {
        (title.split(" ")[-1], row[0].text, heading): (row[1].text, cell)
        for name, title in page.captions.items()
        if name.startswith("fashion-mnist-accuracy")
        for row in page.tables[name]
        for heading, cell in zip(page.headings[name], row, strict=True)
    }
    seen = 0
    for row in section["tables"]["accuracy"]:
        sizes = (
            ["4/255", "8/255"] if row["attack"] == "clean" else [f"{row['epsilon'] * 255:.0f}/255"]
        )
        heading = "noise (control)" if row["attack"] == "noise" else row["attack"]
        for size in sizes:
            n, cell = shown[size, row["model"], heading]
            assert int(n) == row["n"]
            assert cell.text == percent(row["accuracy"], row["n"])
            assert cell.detail == percent_range(row["low"], row["high"], row["n"])
            assert cell.strong == row["best"]
            seen += 1
    assert seen == 4 * (2 + 2 * 4)


def test_the_page_shows_the_differences_and_perplexities_of_the_data(page, document):
    images, text = document["sections"][0], document["sections"][2]
    rows = images["tables"]["differences"]
    shown = page.tables["fashion-mnist-differences"]
    assert len(shown) == len(rows) == 6 * 7
    for row, cells in zip(rows, shown, strict=True):
        texts = [cell.text for cell in cells]
        assert texts[1:3] == [row["model_a"], row["model_b"]]
        assert float(texts[3]) == pytest.approx(100 * row["difference"], abs=0.051)
        assert texts[4:6] == [p_text(row["p_holm"]), p_text(row["p_value"])]
        assert texts[6:] == [str(row["n"]), f"{row['only_a']} : {row['only_b']}"]
    cells = {
        (row[0].text, heading): cell.text
        for row in page.tables["sotu-test-perplexity-all"]
        for heading, cell in zip(page.headings["sotu-test-perplexity-all"], row, strict=True)
    }
    for row in text["tables"]["perplexity"]:
        heading = "clean" if row["rate"] == 0 else f"{100 * row['rate']:g} %"
        assert cells[row["model"], heading] == number(row["perplexity"])


def test_findings_stand_at_their_numbers_in_every_format(report, page, document):
    finding = document["sections"][0]["findings"][0]
    assert finding["mark"] == "F1"
    cells = [
        (name, heading, row[0].text)
        for name, rows in page.tables.items()
        for row in rows
        for heading, cell in zip(page.headings[name], row, strict=True)
        if "F1" in cell.marks
    ]
    assert cells == [("fashion-mnist-accuracy-2", "fgsm", "micro-softmax-seed0")]
    words = " ".join(" ".join(page.words).split())
    assert finding["remedy"] in words
    assert "What to do: " + finding["remedy"] in unescape_markdown(
        (report / "report.md").read_text()
    ).replace("**", "")
    assert finding["remedy"].split(",")[0] in (
        report / "tables" / "fashion-mnist-accuracy-2.tex"
    ).read_text().replace("{-}", "-")
    frame = pd.read_csv(report / "tables" / "fashion-mnist-accuracy.csv", keep_default_na=False)
    assert frame.loc[frame["findings"].str.contains("F1"), "attack"].tolist() == ["fgsm"]
    assert {"F1", "F2", "F3"} <= set(page.ids)


def test_interrupted_and_provenance(report, page):
    words = " ".join(" ".join(page.words).split())
    assert "Run second was interrupted" in words
    assert "elliptical-robust eval --model a --model b" in words
    for name in ("report.md", "report.tex"):
        assert "Run second was interrupted" in (report / name).read_text()
    document = json.loads((report / "report.json").read_text())
    assert [each["title"] for each in document["provenance"]] == ["Run first", "Run second"]
    assert document["provenance"][1]["facts"]["State"] == "interrupted"
    assert len(document["provenance"][0]["facts"]["Model lm-softmax"].split(" ")[2]) == 65


def test_json_has_no_number_that_json_lacks(report):
    def refuse(name):
        raise AssertionError(name)

    json.loads((report / "report.json").read_text(), parse_constant=refuse)


def test_latex_is_sound(report):
    for path in [report / "report.tex", *(report / "tables").glob("*.tex")]:
        check_latex(path.read_text())
    source = (report / "report.tex").read_text()
    for folder, ending in (("tables", "tex"), ("figures", "pdf")):
        for path in (report / folder).glob(f"*.{ending}"):
            assert f"{{{folder}/{path.name}}}" in source


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles_as_it_is(report, tmp_path):
    folder = shutil.copytree(report, tmp_path / "report")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "report.pdf").stat().st_size > 10_000


def test_no_number_is_rounded_in_the_data(document):
    row = document["sections"][0]["tables"]["accuracy"][0]
    assert row["accuracy"] == row["robust"] / row["n"]
    assert not np.isclose(row["low"], round(row["low"], 3), atol=1e-9)

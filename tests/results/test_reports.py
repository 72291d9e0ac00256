import re

import pytest

from robustbench_elliptical.reports import accuracy_table, attack_title, percent, render_markdown
from robustbench_elliptical.reports.markdown import escape_markdown

HOSTILE = "a|b `x` <script>alert(1)</script> [l](http://e) *b*\n\n# h ![i](u) $x$"


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def unescape(text):
    return re.sub(r"\\(.)", r"\1", text)


def test_the_markdown_holds_the_numbers_of_the_summaries(results):
    lines = render_markdown(results).splitlines()
    start = lines.index(next(line for line in lines if line.startswith("| model |")))
    rows = [cells(line) for line in lines[start + 2 : start + 4]]
    for row, summary in zip(rows, results.images.summaries, strict=True):
        values = [unescape(cell) for cell in row]
        assert values[:2] == [summary.model, summary.attack]
        assert values[3] == ("" if summary.norm is None else "8/255")
        assert float(values[4]) == pytest.approx(100 * summary.accuracy, abs=0.05)
        assert values[5] == f"{100 * summary.low:.1f} to {100 * summary.high:.1f}"
        counts = (summary.samples, summary.fooled, summary.skipped, summary.failed)
        assert [int(value) for value in values[6:10]] == list(counts)
        assert float(values[10]) == pytest.approx(summary.forwards / summary.samples, abs=0.05)
    text = render_markdown(results)
    assert "failed\\-samples" in text or "failed-samples" in text
    assert "elliptical-robust eval" in text


def test_hostile_names_stay_text_in_one_cell(results):
    results.images.summaries[1] = results.images.summaries[1].model_copy(update={"model": HOSTILE})
    results.images.findings[0] = results.images.findings[0].model_copy(update={"evidence": HOSTILE})
    text = render_markdown(results)
    row = next(line for line in text.splitlines() if "script" in line and line.startswith("| "))
    assert len(cells(row)) == 13
    assert unescape(cells(row)[0]) == " ".join(HOSTILE.split())
    for raw in ("<script>", "[l](", "![i]", "*b*", "`x`", "\n# h"):
        assert raw not in text


def test_escaping_is_undone_by_reading_markdown():
    assert unescape(escape_markdown(HOSTILE)) == " ".join(HOSTILE.split())


def test_an_interrupted_run_says_so(results):
    assert "Interrupted" not in render_markdown(results)
    assert "Interrupted" in render_markdown(results.model_copy(update={"complete": False}))


def test_titles_and_shares(results):
    clean, pgd = results.images.summaries
    assert attack_title(clean) == "clean"
    assert attack_title(pgd) == "pgd 8/255"
    l2 = pgd.model_copy(update={"norm": "l2", "epsilon": 0.5})
    assert attack_title(l2) == "pgd l2 0.5"
    assert percent(pgd) == "25.0 [5.0, 70.0]"
    frame = accuracy_table(results.images)
    assert frame.forwards.tolist() == [21.0, 21.0]
    assert frame.epsilon.tolist() == ["", "8/255"]

"""Names from outside that would break out of a format, in every place a name can stand."""

import csv
import io
import json
import re
import shutil
import subprocess

import insides
import pytest
from reading import (
    Page,
    check_latex,
    latex_rows,
    markdown_tables,
    unescape_latex,
    unescape_markdown,
)

from robustbench_elliptical.reports import write_report
from robustbench_elliptical.reports.formats.escaping import csv_text, latex, markdown, plain

NAMES = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&lt;",
    "a|b *c* _d_ `e` ~f~ [x](http://evil.example) ![y](//evil.example/z.png)",
    r"\input{/etc/passwd} $x_1$ 50% #1 & ^ ~ \\ }{ \end{tabular}",
    '=HYPERLINK("http://evil.example","x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "-2+3\nsecond line\r\n# heading\n- item",
    "\u202egnp.exe \u200b\x00\x1b[31m \u2028",
    "\u6a21\u578b \U0001f600 na\u00efve \u2264",
    "{{ 7 * 7 }} {% raw %} << 7 * 7 >> <% raw %> {# c #}",
    "www.evil.example http://evil.example mailto:a@evil.example",
    "1. item",
    "x" * 300,
]


@pytest.fixture(scope="module")
def hostile(make, tmp_path_factory):
    """A report in which every text from outside is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    models = [
        make.model_record(name, family=NAMES[0], attention=NAMES[2], checkpoint_file=NAMES[1])
        for name in NAMES[:6]
    ]
    evaluation = make.image_evaluation(
        models,
        strengths=[0.1, 0.3, 0.5, 0.6, 0.7, 0.8],
        attacks=(NAMES[1],),
        epsilons=(8 / 255,),
        data=NAMES[0],
        command=NAMES[2],
        git_commit=NAMES[6],
        versions={NAMES[0]: NAMES[1]},
        findings=[
            make.finding(NAMES[0], id=NAMES[3], evidence=NAMES[2], remedy=NAMES[1], attack=NAMES[1])
        ],
    )
    evaluation = insides.with_inside(evaluation, classes=NAMES, pictures={"classes": len(NAMES)})
    readers = [make.model_record(name, task="language-modelling") for name in NAMES[6:]]
    text = make.text_evaluation(
        readers,
        means=[4 + place / 10 for place in range(6)],
        units=[NAMES[0]] * 6,
        rates=(0.01,),
        data=NAMES[8],
        split=NAMES[9],
        attack=NAMES[2],
        findings=[make.finding("unheard of", evidence=NAMES[0], remedy=NAMES[8])],
    )
    run = make.write(folder / "=run <b> & $x$ 100% _y_", make.joined(evaluation, text))
    write_report([run], folder / "report")
    return folder / "report"


def names_in(cells):
    return [plain(name) for name in NAMES if plain(name) in cells]


def test_html(hostile):
    source = (hostile / "report.html").read_text(encoding="utf-8")
    page = Page(source)
    assert page.tags.isdisjoint({"script", "img", "b\x00", "iframe", "object"})
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for tag, name, value in page.attributes:
        if name in ("href", "src"):
            drawn = tag == "image" and value.startswith("data:image/png;base64,")
            assert value.startswith("#") or (tag, value) == ("link", "data:,") or drawn
    assert len(page.ids) == len(set(page.ids))
    cells = {cell.text for rows in page.tables.values() for row in rows for cell in row}
    assert names_in(cells) == [plain(name) for name in NAMES]
    for letter in "\u202e\u200b\x00\x1b\u2028":
        assert letter not in source
    assert "unheard of" in " ".join(page.words)


def test_markdown(hostile):
    source = (hostile / "report.md").read_text(encoding="utf-8")
    tables = markdown_tables(source)
    cells = {unescape_markdown(cell) for rows in tables.values() for row in rows for cell in row}
    assert names_in(cells) == [plain(name) for name in NAMES]
    for rows in tables.values():
        assert len({len(row) for row in rows}) == 1
    for line in source.splitlines():
        assert not re.search(r"(?<!\\)<", line)
        assert not re.search(r"(?<!\\)\]\((?!figures/)", line)
        assert not re.search(r"https?://|www\.(?!\\)", line)
    assert "\n# heading" not in source


def test_latex(hostile):
    sources = {path: path.read_text(encoding="utf-8") for path in hostile.rglob("*.tex")}
    cells = set()
    for path, source in sources.items():
        check_latex(source)
        assert not re.search(r"\\input\{(?!tables/)", source)
        if path.parent.name == "tables":
            cells |= {unescape_latex(cell) for row in latex_rows(source) for cell in row}
    ascii_names = [plain(name) for name in NAMES if plain(name).isascii()]
    assert [name for name in ascii_names if name in cells] == ascii_names


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(hostile, tmp_path):
    folder = shutil.copytree(hostile, tmp_path / "report")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")


def test_csv(hostile):
    found = set()
    for path in hostile.rglob("*.csv"):
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
        assert len({len(row) for row in rows}) == 1
        for row in rows[1:]:
            for cell in row:
                found.add(cell.removeprefix("'"))
                assert not cell.startswith(("=", "@", "+", "\t", "\r"))
                assert not cell.startswith("-") or float(cell) < 0
    assert names_in(found) == [plain(name) for name in NAMES]


def test_json_keeps_them_as_they_are(hostile):
    document = json.loads((hostile / "report.json").read_text(encoding="utf-8"))
    models = {
        row["model"]
        for section in document["sections"]
        for name in ("accuracy", "perplexity")
        for row in section["tables"].get(name, [])
    }
    assert models == set(NAMES)


def test_file_names_are_plain(hostile):
    for path in hostile.rglob("*"):
        assert re.fullmatch(r"[a-z0-9.-]+", path.name)


@pytest.mark.parametrize("name", NAMES)
def test_escaping_is_undone_by_reading(name):
    assert unescape_markdown(markdown(name)) == plain(name)
    if plain(name).isascii():
        assert unescape_latex(latex(name)) == plain(name)
    assert plain(name).isprintable()


def test_half_a_letter():
    assert plain("a\ud800") == r"a\ud800"


def test_csv_text():
    assert csv_text("=1+1") == "'=1+1"
    assert csv_text(" =1+1") == "'=1+1"
    assert csv_text("\t@x") == "'@x"
    assert csv_text(-1.5) == -1.5
    assert csv_text("model-a") == "model-a"

"""`elliptical-robust report`."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from robustbench_elliptical.cli import main
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports import write_report, writing
from robustbench_elliptical.reports.figures import Rendered

GOLDEN = Path(__file__).parents[1] / "data" / "results" / "v1"


@pytest.fixture
def elliptical_robust(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["elliptical-robust", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main.run()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


def test_a_report_on_results_of_the_first_version(elliptical_robust, tmp_path):
    folder = tmp_path / "deep" / "report"
    code, out, err = elliptical_robust("report", GOLDEN, "--output", folder)
    assert (code, err) == (0, "")
    assert str(folder / "report.html") in out
    document = json.loads((folder / "report.json").read_text())
    (section,) = document["sections"]
    assert section["title"] == "Images: fashion-mnist, n = 6"
    raw = json.loads((GOLDEN / "results.json").read_text())
    assert len(section["findings"]) == len(raw["findings"])
    assert [
        row["accuracy"] for row in section["tables"]["accuracy"] if row["attack"] == "fgsm"
    ] == [each["accuracy"] for each in raw["summaries"] if each["attack"] == "fgsm"]


def test_bad_input_is_one_sentence_and_leaves_nothing(elliptical_robust, tmp_path):
    for words in (
        ("report", tmp_path / "nowhere", "--output", tmp_path / "out"),
        ("report", GOLDEN, GOLDEN, "--output", tmp_path / "out"),
        ("report", GOLDEN, "--output", GOLDEN),
        ("report", GOLDEN, "--output", tmp_path / "out", "--against", "nobody"),
    ):
        code, out, err = elliptical_robust(*words)
        assert (code, out) == (2, "")
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch, code):
    def full(*_):
        raise OSError(code, "it is so")

    monkeypatch.setattr(writing, "render_figure", full)
    with pytest.raises(UsageError, match=r"cannot write the report to .*it is so"):
        write_report([GOLDEN], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_defect_leaves_nothing(tmp_path, monkeypatch):
    nothing = Rendered(b"", b"", b"", "")
    monkeypatch.setattr(writing, "render_figure", lambda _: nothing)
    monkeypatch.setattr(writing, "render_html", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report([GOLDEN], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_no_model_and_no_attack_is_imported():
    code = (
        "import sys, robustbench_elliptical.reports;"
        "print([name for name in sys.modules if name.split('.')[0] in ('torch', 'timm')"
        " or name.startswith(('robustbench_elliptical.models', 'robustbench_elliptical.attacks'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

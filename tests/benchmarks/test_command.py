"""`python -m benchmarks`: the form of what it prints, never a time."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_one_benchmark_prints_one_row_and_writes_it_as_markdown(tmp_path):
    written = tmp_path / "table.md"
    result = run("evaluator", "--quick", "--markdown", str(written))
    assert result.returncode == 0, result.stderr
    assert "time ratio" in result.stdout
    header, rule, row, *rest = written.read_text().splitlines()
    assert header == (
        "| benchmark | measured | floor or peer | time ratio [quartiles] | target | verdict | n |"
    )
    assert rule == "|" + " --- |" * 7
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == "evaluator"
    assert re.fullmatch(r"\d+\.\d{3} \[\d+\.\d{3}, \d+\.\d{3}\]", cells[3])
    assert cells[4:6] == ["-", "-"]
    assert re.fullmatch(r"8 images, \d+ turns", cells[6])
    assert cells[3] in result.stdout
    assert any("threads" in line for line in rest)


def test_unknown_name_is_one_sentence():
    result = run("evaluater", "--quick")
    assert result.returncode == 2
    assert result.stderr == "Error: unknown benchmark 'evaluater': did you mean 'evaluator'?\n"

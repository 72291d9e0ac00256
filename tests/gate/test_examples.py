"""The shell lines of the examples run, and the rules they name are rules."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from robustbench_elliptical.gate import read_rules

yaml = pytest.importorskip("yaml")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RULES = EXAMPLES / "gate.toml"


@pytest.fixture
def shell(frozen, words, tmp_path):
    """Run shell text as the example does, with `command` as the elliptical-robust it finds."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def call(text, command, **more):
        script = folder / "elliptical-robust"
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(EXAMPLES.parents[1]),
            "MODEL": words("damaged"),
            "BASELINE": str(frozen),
            "RULES": str(RULES),
        }
        return subprocess.run(
            text,
            cwd=tmp_path,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call


@pytest.fixture
def asked(shell, tmp_path):
    """Run shell text with a command that only notes its words; returns (code, its words)."""

    def call(text, code=0, **more):
        noted = tmp_path / "words"
        noted.unlink(missing_ok=True)
        done = shell(text, f'printf "%s\\0" "$@" > {shlex.quote(str(noted))}; exit {code}', **more)
        words = noted.read_text().split("\0")[:-1] if noted.exists() else None
        return done.returncode, words

    return call


def _lines(name):
    document = yaml.safe_load((EXAMPLES / name).read_text())
    if "jobs" in document:
        steps = document["jobs"]["gate"]["steps"]
        lines = [each["run"] for each in steps if "run" in each]
    else:
        lines = document["robustness"]["script"]
    return [line for line in lines if line.startswith("elliptical-robust")]


def test_the_workflow_stops_a_damaged_checkpoint_as_a_process_of_its_own(shell, tmp_path):
    (line,) = _lines("github-workflow.yml")
    summary = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    command = f'exec {shlex.quote(sys.executable)} -m robustbench_elliptical "$@"'
    done = shell(["sh", "-e", "-c", line], command, **github)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "gate.xml").exists()
    assert (tmp_path / "gate.md").read_text() == summary.read_text()
    assert "::error title=" in done.stdout


def test_the_gitlab_job_stops_a_damaged_checkpoint(asked, elliptical_robust, tmp_path):
    (line,) = _lines("gitlab-ci.yml")
    _, words = asked(["sh", "-e", "-c", line])
    assert elliptical_robust(*words)[0] == 1
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["robustness"]
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).exists()
    assert all((tmp_path / path).exists() for path in job["artifacts"]["paths"])


def test_the_hook_looks_at_changed_checkpoints_only(asked, elliptical_robust, tmp_path):
    hook = ["sh", str(EXAMPLES / "pre-commit-hook.sh")]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.safetensors").write_bytes(b"0")
    changed = {"CHECKPOINT": "new.safetensors"}
    assert asked(hook, **changed) == (0, None)
    subprocess.run(["git", "-C", str(tmp_path), "add", "new.safetensors"], check=True)
    ends = [asked(hook, code, **changed) for code in (0, 1, 2, 3)]
    assert [code for code, _ in ends] == [0, 1, 2, 0]
    assert elliptical_robust(*ends[0][1])[0] == 1


def test_the_rules_of_the_documents_are_valid(tmp_path):
    assert read_rules(RULES).drop(("pgd(steps=3)", "pgd")) == 0.02
    text = (EXAMPLES.parent / "gate.md").read_text()
    block = text.partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "rules.toml"
    path.write_text(block)
    rules = read_rules(path)
    assert tomllib.loads(block)["gate"]["max_drop"] == "1.0 pp"
    assert rules.model_copy(update={"attacks": {}}) == read_rules(None)

"""The wheel, built through the sdist, holds what the checkout holds and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = (
    "attacks/suites",
    "models/cards",
    "models/checkpoints",
    "models/recipes",
    "reports/published",
    "reports/templates",
)


def build(folder, target, output):
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(output)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    (built,) = output.iterdir()
    return built


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    sdist = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    wheel = build(source, "wheel", tmp_path_factory.mktemp("wheel"))
    assert wheel.stat().st_size < 40 * 1024**2
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def tracked(folder):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with the checkout's files")
def test_the_wheel_is_the_checkout(names):
    expected = tracked("robustbench_elliptical")
    for folder in SHIPPED:
        expected |= {f"robustbench_elliptical/shipped/{name}" for name in tracked(folder)}
    assert names == expected


def test_nothing_is_installed_at_the_top_level_but_the_package(names):
    assert {name.split("/")[0] for name in names} == {"robustbench_elliptical"}
    assert "robustbench_elliptical/py.typed" in names
    assert "robustbench_elliptical/shipped/models/cards/deit-micro-elliptical.toml" in names

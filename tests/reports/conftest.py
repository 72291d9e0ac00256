import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import insides
import synthetic

from robustbench_elliptical.reports import write_report
from robustbench_elliptical.reports.blocks import gather, read_runs
from robustbench_elliptical.reports.contents import build_report


@pytest.fixture(scope="session")
def make():
    """The module that makes results."""
    return synthetic


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """Two runs: images with seeds, insides, findings and text in one; other images in the other."""
    folder = tmp_path_factory.mktemp("example")
    names = [f"micro-{kind}-seed{seed}" for kind in ("softmax", "elliptical") for seed in (0, 1)]
    models = [synthetic.model_record(name, seed=int(name[-1]), family=name[:-6]) for name in names]
    images = synthetic.image_evaluation(
        models,
        strengths=[0.3, 0.34, 0.6, 0.72],
        epsilons=(4 / 255, 8 / 255),
        findings=[
            synthetic.finding(names[0]),
            synthetic.finding(
                names[2],
                id="gradients-skip-a-statistic",
                attack=None,
                epsilon=None,
                severity="notice",
            ),
        ],
    )
    readers = [
        synthetic.model_record(name, task="language-modelling")
        for name in ("lm-softmax", "lm-elliptical", "kneser-ney")
    ]
    text = synthetic.text_evaluation(
        readers,
        means=[4.0, 3.9, 5.0],
        findings=[
            synthetic.finding(
                "lm-elliptical", id="not-causal", attack=None, epsilon=None, severity="error"
            )
        ],
    )
    joined = insides.with_inside(synthetic.joined(images, text))
    first = synthetic.write(folder / "first", joined)
    other = synthetic.image_evaluation(
        models[:2],
        strengths=[0.3, 0.5],
        n=80,
        data="npz:other.npz",
        seed=3,
        complete=False,
        attacks=("pgd",),
        epsilons=(8 / 255,),
    )
    return [first, synthetic.write(folder / "second", other)]


@pytest.fixture(scope="session")
def report(example, tmp_path_factory):
    """The folder of the report about the example."""
    folder = tmp_path_factory.mktemp("out") / "report"
    write_report(example, folder)
    return folder


@pytest.fixture
def built():
    """Build a report without drawing files."""

    def build(*folders):
        runs = read_runs(folders)
        return build_report(runs, gather(runs))

    return build

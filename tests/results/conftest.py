import pandas as pd
import pytest

from robustbench_elliptical.results import (
    DOCUMENT_COLUMNS,
    SAMPLE_COLUMNS,
    AccuracySummary,
    AttackRecord,
    DataRecord,
    Evaluation,
    Finding,
    ImageClassificationResults,
    ModelRecord,
    Results,
    RunRecord,
)


def make_summary(**changes):
    values = {
        "model": "m",
        "attack": "pgd",
        "norm": "linf",
        "epsilon": 8 / 255,
        "samples": 4,
        "robust": 1,
        "fooled": 2,
        "skipped": 1,
        "failed": 0,
        "accuracy": 0.25,
        "low": 0.05,
        "high": 0.7,
        "forwards": 84,
        "backwards": 80,
        "seconds": 0.5,
    }
    return AccuracySummary(**{**values, **changes})


@pytest.fixture
def results():
    return Results(
        complete=True,
        run=RunRecord(
            created="2026-01-01T00:00:00+00:00",
            command="elliptical-robust eval",
            seed=0,
            limit=4,
            batch_size=2,
            device="cpu",
            threads=1,
            seconds=1.5,
            versions={"torch": "2"},
            git_commit=None,
        ),
        tasks=[
            ImageClassificationResults(
                models=[
                    ModelRecord(
                        name="m", family="m", seed=0, weights_sha256="0" * 64, description={"a": 1}
                    )
                ],
                data=[
                    DataRecord(name="d", model="m", samples=4, sha256="1" * 64, class_names=None)
                ],
                attacks=[
                    AttackRecord(
                        label="pgd",
                        name="pgd",
                        knowledge="white-box",
                        norm="linf",
                        settings={"steps": 20},
                        epsilons=[8 / 255],
                    )
                ],
                summaries=[make_summary(attack="clean", norm=None, epsilon=0.0), make_summary()],
                findings=[
                    Finding(
                        id="failed-samples",
                        severity="error",
                        model="m",
                        attack="pgd",
                        epsilon=8 / 255,
                        evidence="1 of 4.",
                        remedy="Look.",
                    )
                ],
            )
        ],
    )


@pytest.fixture
def samples():
    rows = [
        ("m", "pgd", 8 / 255, "001", 3, "fooled", 4, 0.1, 21, 20, ""),
        ("m", "pgd", 8 / 255, "NA", 3, "failed", None, float("nan"), 21, 20, 'a "b", c'),
        ("m", "pgd", 8 / 255, "s,\n2", 0, "robust", 0, 0.2, 21, 20, ""),
        ("m", "pgd", 8 / 255, "=x", 1, "skipped", 2, 0.0, 0, 0, ""),
    ]
    frame = pd.DataFrame(rows, columns=list(SAMPLE_COLUMNS))
    return frame.astype({"prediction": "Int64"})


@pytest.fixture
def evaluation(results, samples):
    return Evaluation(results, samples, pd.DataFrame(columns=list(DOCUMENT_COLUMNS)))

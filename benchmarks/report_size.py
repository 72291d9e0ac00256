"""How long a report takes and how much memory, on results as large as anyone has.

    python -m benchmarks.report_size [MODELS [ATTACKS [SAMPLES]]]

makes one run of 12 models under 6 attacks at 1 epsilon on 50,000 samples (about 4.8 million rows,
clean and noise included) in a temporary folder, reports on it in a process of its own, and prints
wall time and peak memory. The target is 60 s and 2 GB.
"""

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from robustbench_elliptical.results import (
    SAMPLE_COLUMNS,
    AccuracySummary,
    AttackRecord,
    DataRecord,
    ImageClassificationResults,
    ModelRecord,
    Results,
    RunRecord,
    wilson_interval,
)

__all__ = ["write_run"]

EPSILON = 4 / 255
SECONDS, GIGABYTES = 60, 2


def write_run(folder: Path, models: int, attacks: int, samples: int) -> None:
    """Write a result folder, model by model: it need not fit into memory."""
    folder.mkdir()
    ids = [f"imagefolder/val/ILSVRC2012_val_{place:08d}.JPEG" for place in range(samples)]
    names = [f"deit-tiny-{place}" for place in range(models)]
    labels = ["noise", *(f"attack-{place}" for place in range(attacks))]
    summaries: list[AccuracySummary] = []
    with (folder / "samples.csv").open("w") as file:
        file.write(",".join(SAMPLE_COLUMNS) + "\n")
        for place, name in enumerate(names):
            rng = np.random.default_rng(place)
            clean = rng.random(samples) < 0.72
            for attack in ("clean", *labels):
                resists = rng.random(samples) < (1 if attack in ("clean", "noise") else 0.5)
                outcomes = np.where(clean & resists, "robust", np.where(clean, "fooled", "skipped"))
                _rows(name, attack, ids, outcomes).to_csv(file, index=False, header=False)
                summaries.append(_summary(name, attack, outcomes))
    (folder / "results.json").write_text(_results(names, labels, samples, summaries))


def _rows(model: str, attack: str, ids: list[str], outcomes: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame({"sample_id": ids, "outcome": outcomes})
    frame = frame.assign(
        model=model,
        attack=attack,
        epsilon=0.0 if attack == "clean" else EPSILON,
        label=7,
        prediction=7,
        distance=0.015686273574829102,
        forwards=21,
        backwards=20,
        reason="",
    )
    return frame[list(SAMPLE_COLUMNS)]


def _summary(model: str, attack: str, outcomes: np.ndarray) -> AccuracySummary:
    samples, robust = len(outcomes), int((outcomes == "robust").sum())
    low, high = wilson_interval(robust, samples)
    return AccuracySummary(
        model=model,
        attack=attack,
        norm=None if attack == "clean" else "linf",
        epsilon=0.0 if attack == "clean" else EPSILON,
        samples=samples,
        robust=robust,
        fooled=int((outcomes == "fooled").sum()),
        skipped=int((outcomes == "skipped").sum()),
        failed=0,
        accuracy=robust / samples,
        low=low,
        high=high,
        forwards=21 * samples,
        backwards=20 * samples,
        seconds=100.0,
    )


def _results(
    names: list[str], labels: list[str], samples: int, summaries: list[AccuracySummary]
) -> str:
    task = ImageClassificationResults(
        models=[
            ModelRecord(
                name=name,
                family=name,
                seed=0,
                weights_sha256=hashlib.sha256(name.encode()).hexdigest(),
                description={"name": name},
            )
            for name in names
        ],
        data=[
            DataRecord(
                name="imagefolder:val",
                model=name,
                samples=samples,
                sha256="0" * 64,
                class_names=None,
            )
            for name in names
        ],
        attacks=[
            AttackRecord(
                label=label,
                name=label,
                knowledge="none" if label == "noise" else "white-box",
                norm="linf",
                settings={},
                epsilons=[EPSILON],
            )
            for label in labels
        ],
        summaries=summaries,
        findings=[],
    )
    run = RunRecord(
        created="2026-01-01T00:00:00+00:00",
        command="elliptical-robust eval",
        seed=0,
        limit=None,
        batch_size=100,
        device="cuda",
        threads=1,
        seconds=3600.0,
        versions={},
        git_commit=None,
    )
    return Results(complete=True, run=run, tasks=[task]).model_dump_json()


def main(models: int = 12, attacks: int = 6, samples: int = 50_000) -> None:
    with tempfile.TemporaryDirectory() as name:
        run, output = Path(name) / "run", Path(name) / "report"
        write_run(run, models, attacks, samples)
        command = ["-m", "robustbench_elliptical", "report", str(run), "--output", str(output)]
        clock = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True)
        seconds = time.perf_counter() - clock
        size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    met = "met" if seconds < SECONDS and peak < GIGABYTES else "missed"
    print(
        f"{models} models x {attacks} attacks x {samples} samples: {seconds:.1f} s, peak "
        f"{peak:.2f} GB, report {size / 1e6:.1f} MB; target {SECONDS} s, {GIGABYTES} GB: {met}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from robustbench_elliptical.cli import running as commands
from robustbench_elliptical.evaluation.images import task as running
from robustbench_elliptical.results import read_results, wilson_interval


def test_a_run_writes_what_it_prints(elliptical_robust, tiny, data, tmp_path):
    code, out, err = elliptical_robust(
        "eval", "--model", tiny, "--data", data, "--attack", "fgsm", "--attack", "pgd:steps=3",
        "--epsilon", "16/255", "--epsilon", "8/255", "--limit", "all", "--output", "out",
    )  # fmt: skip
    assert (code, err) == (0, "")
    results, samples, *_ = read_results(tmp_path / "out")
    assert results.complete
    titles = ("clean", "noise 8/255", "fgsm 16/255", "pgd(steps=3) 8/255", "worst-case 16/255")
    for title in titles:
        assert title in out
    assert "Results: out" in out
    by_unit = {(each.attack, each.epsilon): each for each in results.images.summaries}
    assert len(by_unit) == 1 + 3 * 2 + 2
    for (attack, epsilon), rows in samples.groupby(["attack", "epsilon"]):
        summary = by_unit[attack, epsilon]
        robust = int((rows.outcome == "robust").sum())
        assert (summary.robust, summary.samples) == (robust, 30)
        assert (summary.low, summary.high) == wilson_interval(robust, 30)
        assert summary.forwards == rows.forwards.sum()
        share = f"{100 * robust / 30:.1f} [{100 * summary.low:.1f}, {100 * summary.high:.1f}]"
        assert share in out
        assert f"| {100 * robust / 30:.1f} |" in (tmp_path / "out" / "table.md").read_text()


def test_the_same_command_gives_the_same_samples_at_any_batch_size(
    elliptical_robust, tiny, data, tmp_path
):
    words = ("eval", "--model", tiny, "--data", data, "--attack", "pgd", "--limit", "20")
    for name, size in (("a", 20), ("b", 7), ("c", 20)):
        assert elliptical_robust(*words, "--batch-size", size, "--output", name)[0] == 0
    results, samples, *_ = zip(*(read_results(tmp_path / name) for name in "abc"), strict=True)
    keys = ["attack", "sample_id"]
    first, second, third = (each.sort_values(keys).reset_index(drop=True) for each in samples)
    assert first.equals(third)
    assert (first.outcome == second.outcome).all()
    np.testing.assert_allclose(first.distance, second.distance, atol=1e-6)
    assert len({each.images.data[0].sha256 for each in results}) == 1
    assert len({each.images.models[0].weights_sha256 for each in results}) == 1


def test_json_is_the_results_file(elliptical_robust, tiny, data, tmp_path):
    words = ("eval", "--model", tiny, "--data", data, "--attack", "clean", "--json")
    code, out, _ = elliptical_robust(*words, "--output", "out")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "out" / "results.json").read_text())


def test_controls_are_models_of_their_own(elliptical_robust, tiny, data, tmp_path):
    words = ["eval", "--data", data, "--attack", "fgsm", "--output", "out"]
    for control in ("", ",metric=identity", ",metric=random", ",gradient_mode=through"):
        words += ["--model", tiny + control]
    code, _, err = elliptical_robust(*words)
    assert (code, err) == (0, "")
    results, *_ = read_results(tmp_path / "out")
    assert [each.name for each in results.images.models] == [
        "tiny",
        "tiny,metric=identity",
        "tiny,metric=random",
        "tiny,gradient_mode=through",
    ]
    flagged = [each.model for each in results.findings if each.id == "gradients-skip-a-statistic"]
    assert flagged == ["tiny"]


def test_the_default_folder_is_named_after_time_and_slug(elliptical_robust, tiny, data, tmp_path):
    code, _, _ = elliptical_robust("eval", "--model", tiny, "--data", data, "--attack", "clean")
    assert code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"\d{8}-\d{6}-tiny[\w-]*", folder.name)
    assert read_results(folder)[0].complete


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "deit-micro-eliptical"], "did you mean 'deit-micro-elliptical'"),
        (["--attack", "pdg"], "unknown attack 'pdg': did you mean 'pgd'?"),
        (["--attack", "pgd:stpes=3"], "did you mean 'steps'"),
        (["--attack", "pgd:steps=0"], "steps: input should be greater than or equal to 1, got '0'"),
        (["--epsilon", "8"], "did you mean 8/255?"),
        (["--epsilon", "-8/255"], "epsilon must be 0 or more"),
        (["--epsilon", "x"], "epsilon must be a number such as 8/255 or 0.031, got 'x'"),
        (["--limit", "0"], "option --limit: input should be greater than or equal to 1"),
        (["--limit", "some"], "option --limit: input should be a valid integer"),
        (["--seed", "-1"], "option --seed: input should be greater than or equal to 0"),
        (["--batch-size", "0"], "option --batch-size: input should be greater than or equal to 1"),
        (["--examples", "-1"], "--examples: input should be greater than or equal to 0, got -1"),
        (["--device", "tpu9"], "device must be one that torch can compute on here"),
        (["--device", "meta"], "such as cpu, got 'meta'"),
        (["--attack", "clean", "--epsilon", "8"], "did you mean 8/255?"),
        (["--attack", "pgd:step_size=8"], "did you mean 8/255?"),
        (["--attack", "spsa:delta=5"], "must be at most 1 in [0, 1] pixels"),
        (["--suite", ""], "unknown suite ''"),
        (["--suite", "vision-seed"], "did you mean 'vision-seeds'"),
        (["--data", "mnist"], "did you mean 'fashion-mnist'?"),
        (["--data", "npz:nowhere.npz"], "nowhere.npz"),
        (["--model", "timm:vit_tiny_patch16_224"], "checkpoint"),
        (["--model", "nowhere.toml"], "nowhere.toml"),
        (["--attack", "fgsm", "--attack", "fgsm"], "'fgsm' is given twice"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    elliptical_robust, tmp_path, words, message
):
    code, out, err = elliptical_robust("eval", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_data_that_does_not_fit_the_model(elliptical_robust, tiny, tmp_path):
    before = sorted(tmp_path.iterdir())
    cases = {
        "classes": {"images": np.zeros((4, 1, 8, 8), np.uint8), "labels": [0, 1, 2, 5]},
        "shape": {"images": np.zeros((4, 1, 9, 9), np.uint8), "labels": [0, 1, 2, 0]},
        "must be finite and lie in": {"images": np.full((4, 1, 8, 8), 2.0), "labels": [0, 1, 2, 0]},
        "no samples": {"images": np.zeros((0, 1, 8, 8), np.uint8), "labels": np.zeros(0, int)},
    }
    for message, arrays in cases.items():
        np.savez(tmp_path / "bad.npz", **arrays)
        code, _, err = elliptical_robust("eval", "--model", tiny, "--data", "npz:bad.npz")
        assert code == 2, message
        assert err.count("\n") == 1
        assert message in err or message == "classes"
        (tmp_path / "bad.npz").unlink()
    assert sorted(tmp_path.iterdir()) == before


def test_a_checkpoint_that_is_not_one(elliptical_robust, card, data, tmp_path):
    broken = tmp_path / "broken.pth"
    broken.write_bytes(b"<html>404</html>")
    code, _, err = elliptical_robust(
        "eval", "--model", f"tiny,card={card},checkpoint={broken}", "--data", data
    )
    assert code == 2
    assert "broken.pth" in err
    assert "Traceback" not in err


def test_output_that_exists_or_cannot_be_written(elliptical_robust, tiny, data, tmp_path):
    (tmp_path / "file").write_text("")
    for output in (".", "file", "file/run"):
        code, _, err = elliptical_robust(
            "eval", "--model", tiny, "--data", data, "--output", output
        )
        assert code == 2
        assert "--output" in err


def test_an_interruption_keeps_the_finished_parts(
    elliptical_robust, tiny, data, tmp_path, monkeypatch
):
    evaluate_batch = running.evaluate_batch
    calls = []

    def interrupted(*args, **kwargs):
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        evaluate_batch(*args, **kwargs)

    monkeypatch.setattr(running, "evaluate_batch", interrupted)
    code, _, err = elliptical_robust(
        "eval", "--model", tiny, "--data", data, "--batch-size", "10", "--output", "out"
    )
    assert code == 130
    assert "Interrupted: what was finished is in out" in err
    results, samples, *_ = read_results(tmp_path / "out")
    assert not results.complete
    assert [each.samples for each in results.images.data] == [
        20
    ]  # read; the second batch was cut off
    assert {each.samples for each in results.images.summaries} == {10}
    assert len(samples) == 10 * (len(results.images.summaries) - 1)
    assert "Interrupted" in (tmp_path / "out" / "table.md").read_text()


def test_an_interruption_claims_nothing_of_models_it_did_not_reach(
    elliptical_robust, tiny, data, tmp_path, monkeypatch
):
    evaluate_batch = running.evaluate_batch

    def interrupted(model, *args, **kwargs):
        if model.name != "tiny":
            raise KeyboardInterrupt
        evaluate_batch(model, *args, **kwargs)

    monkeypatch.setattr(running, "evaluate_batch", interrupted)
    words = ("--model", tiny, "--model", f"{tiny},metric=constant", "--attack", "fgsm")
    code, _, _ = elliptical_robust("eval", *words, "--data", data, "--output", "out")
    assert code == 130
    results, *_ = read_results(tmp_path / "out")
    assert [each.name for each in results.images.models] == ["tiny"]
    assert [each.model for each in results.images.data] == ["tiny"]
    assert {each.model for each in results.findings} <= {"tiny"}


def test_runs_of_one_second_do_not_collide(elliptical_robust, tiny, data, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "_default_folder", lambda settings: Path("runs/same"))
    words = ("eval", "--model", tiny, "--data", data, "--attack", "clean")
    for name in ("same", "same-2", "same-3"):
        code, out, _ = elliptical_robust(*words)
        assert code == 0
        assert f"Results: runs/{name}\n" in out
    assert sorted(path.name for path in Path("runs").iterdir()) == ["same", "same-2", "same-3"]


def test_a_folder_taken_meanwhile_costs_no_results(
    elliptical_robust, tiny, data, tmp_path, monkeypatch
):
    evaluate = commands.evaluate

    def slow(*args, **kwargs):
        (tmp_path / "out").mkdir()
        return evaluate(*args, **kwargs)

    monkeypatch.setattr(commands, "evaluate", slow)
    words = ("eval", "--model", tiny, "--data", data, "--attack", "clean", "--output", "out")
    code, out, _ = elliptical_robust(*words)
    assert code == 0
    assert "Results: out-2" in out
    assert read_results(tmp_path / "out-2")[0].complete


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_of_a_real_process(tiny, data, tmp_path, sent):
    command = [sys.executable, "-m", "robustbench_elliptical", "eval", "--model", tiny]
    command += ["--data", data, "--attack", "spsa:steps=100000", "--epsilon", "1e-6"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A test run started in the background may ignore the signal, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            time.sleep(20)
            process.send_signal(sent)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err


def test_help_is_quick_because_nothing_heavy_is_imported():
    script = (
        "import sys; sys.argv = ['elliptical-robust', '--help']\n"
        "from robustbench_elliptical.cli import main\n"
        "try: main.run()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'timm', 'pandas', 'numpy', 'scipy', 'matplotlib', 'pydantic'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert finished.returncode == 0, finished.stderr
    for command in ("eval", "train", "models", "attacks", "version"):
        assert command in finished.stdout

import errno
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results import check_writable, read_results, storage, write_results


def test_round_trip(tmp_path, evaluation):
    results, samples = evaluation.results, evaluation.samples
    folder = tmp_path / "runs" / "one"
    write_results(folder, evaluation, lambda _: "table\n")
    back, rows, documents, _ = read_results(folder)
    assert len(documents) == 0
    assert back == results
    assert sorted(path.name for path in folder.iterdir()) == [
        "results.json",
        "samples.csv",
        "table.md",
    ]
    assert rows["sample_id"].tolist() == ["001", "NA", "s,\n2", "=x"]
    assert rows["reason"].tolist() == samples["reason"].tolist()
    assert rows["prediction"].isna().tolist() == [False, True, False, False]
    np.testing.assert_array_equal(rows["distance"], samples["distance"])
    np.testing.assert_array_equal(rows["epsilon"], samples["epsilon"])
    assert [path.name for path in folder.parent.iterdir()] == ["one"]


def test_a_failing_writer_leaves_nothing(tmp_path, evaluation):
    def broken(_):
        raise RuntimeError("template")

    with pytest.raises(RuntimeError, match="template"):
        write_results(tmp_path / "one", evaluation, broken)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, evaluation, monkeypatch, code):
    def full(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(UsageError, match="there is no space left on its disk"):
        write_results(tmp_path / "one", evaluation, str)
    assert list(tmp_path.iterdir()) == []


def test_output_must_be_new(tmp_path):
    with pytest.raises(UsageError, match="exists already; choose another --output"):
        check_writable(tmp_path)
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_parent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write results to .*choose a folder"):
        check_writable(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema_version=3), "have schema version 3, this package reads up to 2"),
        (lambda d: d.pop("run"), "are broken: run: Field required"),
        (lambda d: d.update(extra=1), "are broken: extra"),
    ],
)
def test_other_schemas_are_refused(tmp_path, evaluation, change, message):
    folder = tmp_path / "one"
    write_results(folder, evaluation, str)
    document = json.loads((folder / storage.RESULTS_FILE).read_text())
    change(document)
    (folder / storage.RESULTS_FILE).write_text(json.dumps(document))
    with pytest.raises(UsageError, match=message):
        read_results(folder)


def test_broken_files(tmp_path, evaluation):
    with pytest.raises(UsageError, match="cannot read results"):
        read_results(tmp_path)
    folder = tmp_path / "one"
    write_results(folder, evaluation, str)
    (folder / storage.SAMPLES.name).write_text("model,attack\nm,pgd\n")
    with pytest.raises(UsageError, match=r"samples\.csv lacks epsilon"):
        read_results(folder)
    (folder / storage.RESULTS_FILE).write_text("{")
    with pytest.raises(UsageError, match="are broken"):
        read_results(folder)


GOLDEN = Path(__file__).parents[1] / "data" / "results"


def test_the_first_version_is_migrated():
    raw = json.loads((GOLDEN / "v1" / "results.json").read_text())
    results, samples, documents, _ = read_results(GOLDEN / "v1")
    assert results.schema_version == 2
    assert results.language is None
    assert len(documents) == 0
    found = results.images.model_dump()
    for part in ("models", "data", "attacks", "summaries"):
        assert found[part] == raw[part]
    evidence = [each.evidence for each in results.findings]
    assert evidence == [each["evidence"] for each in raw["findings"]]
    assert results.run.model_dump() == raw["run"] | {"settings": None}
    for summary in results.images.summaries:
        if summary.attack != "worst-case":
            rows = samples[
                (samples["model"] == summary.model)
                & (samples["attack"] == summary.attack)
                & (samples["epsilon"] == summary.epsilon)
            ]
            assert (len(rows), (rows["outcome"] == "robust").sum()) == (6, summary.robust)


def test_the_second_version_is_read_whole():
    raw = json.loads((GOLDEN / "v2" / "results.json").read_text())
    results, samples, documents, pictures = read_results(GOLDEN / "v2")
    assert results.schema_version == raw["schema_version"] == 2
    assert json.loads(results.model_dump_json()) == raw
    for summary in results.images.summaries:
        rows = samples[
            (samples["model"] == summary.model)
            & (samples["attack"] == summary.attack)
            & (samples["epsilon"] == summary.epsilon)
        ]
        assert (len(rows), (rows["outcome"] == "robust").sum()) == (3, summary.robust)
    for summary in results.language.summaries:
        rows = documents[
            (documents["model"] == summary.model)
            & (documents["attack"] == summary.attack)
            & (documents["rate"] == summary.rate)
        ]
        assert np.exp(rows["loss"].sum() / rows["targets"].sum()) == pytest.approx(
            summary.perplexity
        )
    keys = {each.key for each in results.images.pictures}
    assert {name.split("/")[0] for name in pictures} == keys != set()

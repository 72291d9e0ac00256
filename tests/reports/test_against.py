"""Every model compared with one that is named, not every two."""

import json

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports import write_report

REFERENCE = "micro-softmax-seed0"


@pytest.fixture(scope="module")
def sections(example, report, tmp_path_factory):
    """The sections of the report on every two models, and on every one with the reference."""
    folder = tmp_path_factory.mktemp("against") / "report"
    write_report(example, folder, against=REFERENCE)
    return [json.loads((path / "report.json").read_text())["sections"] for path in (report, folder)]


def rows(sections, keys):
    return {
        (*(row[key] for key in keys), row["model_a"], row["model_b"]): row
        for row in sections[0]["tables"]["differences"]
    }


def test_each_is_compared_with_the_one_named_and_the_correction_is_for_these(sections):
    keys = ("attack", "norm", "epsilon")
    every, named = (rows(each, keys) for each in sections)
    assert len(every) == 2 * len(named) > 0  # 6 pairs of 4 models, 3 with the reference
    assert {key[-1] for key in named} == {REFERENCE}
    for (*unit, first, second), row in named.items():
        turned = every[(*unit, second, first)]
        assert row["p_value"] == turned["p_value"]
        assert row["difference"] == pytest.approx(-turned["difference"])
        assert (row["low"], row["high"]) == pytest.approx((-turned["high"], -turned["low"]))
        assert (row["only_a"], row["only_b"]) == (turned["only_b"], turned["only_a"])
    values = [row["p_value"] for row in named.values()]
    corrected = multipletests(values, method="holm")[1]
    np.testing.assert_allclose([row["p_holm"] for row in named.values()], corrected)


def test_data_without_the_one_named_are_compared_as_before(sections):
    every, named = (
        [each for each in found if "perplexity" in each["tables"]] for found in sections
    )
    assert every[0]["tables"]["differences"]
    assert every == named


def test_a_model_that_is_not_there_is_refused(example, tmp_path):
    with pytest.raises(UsageError, match=r"'micro-softmax-seed9'.*micro-softmax-seed0"):
        write_report(example, tmp_path / "report", against="micro-softmax-seed9")
    assert not (tmp_path / "report").exists()

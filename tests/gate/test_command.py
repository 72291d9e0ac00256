"""`baseline` and `check`: refusals, exit codes, outputs, text from outside."""

import gzip
import json
import re
import shutil
from xml.etree import ElementTree as ET

import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.evaluation.images import task as running
from robustbench_elliptical.gate import read_baseline, reference_model
from robustbench_elliptical.gate.outputs.escaping import code, one_line, workflow_property, xml_text

# What the schema of Jenkins (junit-10.xsd) asks: attributes (required with !) and children.
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name!", "tests!", "failures!", "errors!", "skipped", "time", "timestamp", "hostname"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": (
        {"name!", "classname", "time", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}


def check_junit(element):
    attributes, children = JUNIT[element.tag]
    assert set(element.attrib) <= {each.rstrip("!") for each in attributes}
    assert {each[:-1] for each in attributes if each.endswith("!")} <= set(element.attrib)
    for child in element:
        assert child.tag in children
        check_junit(child)


def edited(path, change):
    """Write a baseline that differs; returns its path."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    change(document)
    copy = path.with_name("edited.json")
    copy.write_text(json.dumps(document))
    return copy


@pytest.fixture
def hostile(frozen):
    """A baseline whose model has a name from outside."""
    name = "a|b`<script>\n::error::@team\x1b[31m"

    def rename(document):
        task = document["results"]["tasks"][0]
        task["models"][0]["name"] = name
        task["data"][0]["model"] = name
        document["samples"][0]["model"] = name

    return edited(frozen, rename)


def test_outputs_of_a_regression(elliptical_robust, words, frozen, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    exit_code, out, _ = elliptical_robust("check", words("damaged"), "--baseline", frozen, *files)
    assert exit_code == 1
    assert "Gate: regressed" in out
    assert out.count("::error title=regressed%3A ") == 4
    root = ET.fromstring((tmp_path / "gate.xml").read_bytes())
    check_junit(root)
    assert root.attrib["failures"] == root.attrib["tests"] == "4"
    markdown = (tmp_path / "gate.md").read_text()
    assert markdown.startswith("### Robustness gate: got less robust\n")
    assert markdown.count("**regressed**") == 4
    assert (tmp_path / "summary.md").read_text() == markdown


def test_a_summary_that_cannot_be_written_changes_no_exit_code(
    elliptical_robust, words, frozen, tmp_path, monkeypatch
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    exit_code, out, error = elliptical_robust(
        "check", words("tiny"), "--baseline", frozen, "--json"
    )
    assert exit_code == 0
    assert json.loads(out)["outcome"] == "pass"
    assert "cannot write the step summary" in error


def test_text_from_outside_is_harmless_in_every_output(
    elliptical_robust, words, hostile, tmp_path, monkeypatch
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    exit_code, out, _ = elliptical_robust("check", words("tiny"), "--baseline", hostile, *files)
    assert exit_code == 0
    assert "\x1b" not in out
    assert not re.search("^::error::", out, flags=re.MULTILINE)
    check_junit(ET.fromstring((tmp_path / "gate.xml").read_bytes()))
    line = (tmp_path / "gate.md").read_text().splitlines()[2]
    assert line.endswith(
        "against ``a|b`<script> ::error::@team\ufffd[31m``, same weights; family-wise alpha 0.05."
    )


def test_escaping():
    assert code("") == ""
    assert code("`a") == "`` `a ``"
    assert one_line("a\r\nb\u202ec") == "a b\ufffdc"
    assert workflow_property("50 %: a,b\n") == "50 %25%3A a%2Cb%0A"
    assert xml_text("a\x00\x1b\ufffe<") == "a\ufffd\ufffd\ufffd<"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["results"]["run"]["settings"].update(seed=1), "data hash"),
        (lambda d: d["results"]["tasks"][0]["data"][0].update(sha256="0"), "data hash: 0 then"),
        (
            lambda d: d["results"]["tasks"][0]["attacks"][2]["settings"].update(steps=9),
            "attack pgd(steps=3) steps: 9 then, 3 now",
        ),
        (lambda d: d["samples"][0]["ids"].reverse(), "sample ids"),
    ],
)
def test_another_evaluation_is_refused_with_the_differences(
    elliptical_robust, words, frozen, change, message
):
    def limited(document):
        change(document)
        if document["results"]["run"]["settings"]["seed"]:
            document["results"]["run"]["settings"]["limit"] = 30

    exit_code, out, error = elliptical_robust(
        "check", words("tiny"), "--baseline", edited(frozen, limited)
    )
    assert (exit_code, out) == (2, "")
    assert message in error
    assert len(error.splitlines()) == 1


def test_other_versions_are_a_notice(elliptical_robust, words, frozen):
    changed = edited(frozen, lambda d: d["results"]["run"]["versions"].update(torch="1.0"))
    exit_code, out, _ = elliptical_robust("check", words("tiny"), "--baseline", changed)
    assert exit_code == 0
    assert "torch: 1.0 then" in out


def test_answers_that_are_not_finite_decide_nothing(
    elliptical_robust, words, frozen, tmp_path, monkeypatch
):
    evaluate_batch = running.evaluate_batch

    def with_a_failure(*args, **kwargs):
        evaluate_batch(*args, **kwargs)
        table = next(each for each in args if isinstance(each, running.SampleTable))
        table._blocks[table.units()[0]][0].outcomes[0] = "failed"

    monkeypatch.setattr(running, "evaluate_batch", with_a_failure)
    exit_code, out, _ = elliptical_robust(
        "check", words("tiny"), "--baseline", frozen, "--junit", "gate.xml"
    )
    assert exit_code == 3
    assert "1 of 4000 outcomes failed (no finite answer): nothing is decided." in out
    check_incomplete(tmp_path / "gate.xml")


def check_incomplete(path):
    root = ET.fromstring(path.read_bytes())
    check_junit(root)
    assert (root.attrib["tests"], root.attrib["errors"]) == ("1", "1")


@pytest.mark.parametrize(
    ("place", "message"), [(".", "is a folder"), ("baseline.json.gz/gate.xml", "Not a directory")]
)
def test_a_place_that_cannot_be_written_is_refused_before_the_evaluation(
    elliptical_robust, words, frozen, monkeypatch, place, message
):
    monkeypatch.setattr(running, "evaluate_batch", None)
    exit_code, _, error = elliptical_robust(
        "check", words("tiny"), "--baseline", frozen, "--junit", place
    )
    assert exit_code == 2
    assert message in error


@pytest.mark.parametrize("batches", [0, 1])
def test_an_interruption_decides_nothing(
    elliptical_robust, words, frozen, tmp_path, monkeypatch, batches
):
    evaluate_batch = running.evaluate_batch
    calls = []

    def interrupted(*args, **kwargs):
        if len(calls) == batches:
            raise KeyboardInterrupt
        calls.append(1)
        evaluate_batch(*args, **kwargs)

    monkeypatch.setattr(running, "evaluate_batch", interrupted)
    halves = edited(frozen, lambda d: d["results"]["run"]["settings"].update(batch_size=500))
    exit_code, out, error = elliptical_robust(
        "check", words("tiny"), "--baseline", halves, "--junit", "gate.xml"
    )
    assert exit_code == 3
    assert "nothing is decided" in out + error
    assert (tmp_path / "gate.xml").exists() == bool(batches)
    if batches:
        check_incomplete(tmp_path / "gate.xml")


def test_equal_weights_in_another_model_do_not_pass_outright(elliptical_robust, words, frozen):
    def scaled(document):
        document["results"]["tasks"][0]["models"][0]["description"]["mean"] = [0.25]

    changed = edited(frozen, scaled)
    exit_code, out, _ = elliptical_robust("check", words("tiny"), "--baseline", changed, "--json")
    report = json.loads(out)
    assert report["same_weights"]
    assert "The weights are the same, but not the mean." in report["notices"]
    assert all(each["reason"].startswith("Lost less") for each in report["checks"])
    assert exit_code == 0


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('[gate]\nmax_drop = "1 %"', 'max_drop: must be a text with its unit, such as "1.0 pp"'),
        ("[gate]\nmax_drop = 0.01", "must be a text with its unit"),
        ('[gate]\nmax_drop = "0 pp"', "must be more than 0"),
        ("[gate]\nalhpa = 0.1", "did you mean 'alpha'?"),
        ("[gates]", "did you mean 'gate'?"),
        ("gate = 3", "write [gate]"),
        ('[gate]\nfail_on = ["improved"]', "fail_on"),
        ('[gate.attacks.pdg]\nmax_drop = "2 pp"', "did you mean 'pgd'?"),
        ("[gate", "not valid TOML"),
    ],
)
def test_rules_that_are_none_are_refused(
    elliptical_robust, words, frozen, tmp_path, rules, message
):
    (tmp_path / "gate.toml").write_text(rules)
    exit_code, _, error = elliptical_robust(
        "check", words("tiny"), "--baseline", frozen, "--rules", "gate.toml"
    )
    assert exit_code == 2
    assert message in error


def test_rules_apply(elliptical_robust, words, frozen, tmp_path):
    (tmp_path / "gate.toml").write_text(
        '[gate]\nmax_drop = "0.1 pp"\nfail_on = ["regressed"]\n'
        '[gate.attacks.pgd]\nmax_drop = "5 pp"'
    )
    call = ("check", words("tuned"), "--baseline", frozen, "--rules", "gate.toml", "--json")
    exit_code, out, _ = elliptical_robust(*call)
    allowed = {each["title"]: each["allowed"] for each in json.loads(out)["checks"]}
    assert allowed["pgd(steps=3) 2/255"] == 0.05
    assert allowed["clean"] == 0.001
    assert exit_code == 0
    verdicts = {each["title"]: each["verdict"] for each in json.loads(out)["checks"]}
    assert verdicts["clean"] == "inconclusive"
    (tmp_path / "gate.toml").write_text('[gate]\nfail_on = ["findings"]')
    exit_code, out, _ = elliptical_robust(*call)
    serious = [each for each in json.loads(out)["findings"] if each["severity"] != "notice"]
    assert exit_code == (1 if serious else 0)


def test_files_that_are_no_baseline_are_refused(elliptical_robust, words, frozen, tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("not json")
    (tmp_path / "c.json.gz").write_bytes(frozen.read_bytes()[:100])
    letter = edited(
        frozen, lambda d: d["samples"][0]["units"][0].update(outcomes="?" * 1000)
    ).rename(tmp_path / "letter.json")
    short = edited(frozen, lambda d: d["samples"][0]["units"][0].update(outcomes="r" * 9)).rename(
        tmp_path / "short.json"
    )
    nothing = edited(frozen, lambda d: d["samples"].clear()).rename(tmp_path / "nothing.json")
    newer = edited(frozen, lambda d: d.update(schema_version=9))
    for name, message in (
        (letter, "samples.0.units.0.outcomes"),
        (short, "outcomes of tiny are missing"),
        (nothing, "outcomes of tiny are missing"),
        ("a.json", "is not a baseline"),
        ("b.json", "is broken"),
        ("c.json.gz", "is broken"),
        ("missing.json", "cannot read"),
        (newer, "install a newer"),
    ):
        exit_code, _, error = elliptical_robust("check", words("tiny"), "--baseline", name)
        assert exit_code == 2
        assert message in error
    exit_code, _, error = elliptical_robust(
        "check", words("tiny"), "--baseline", frozen, "--against", "tinny"
    )
    assert exit_code == 2
    assert "did you mean 'tiny'?" in error


def test_a_baseline_is_never_overwritten_and_must_be_complete(
    elliptical_robust, evaluated, frozen, tmp_path
):
    shutil.copytree(evaluated / "run", tmp_path / "run")
    before = frozen.read_bytes()
    exit_code, out, _ = elliptical_robust("baseline", "run", "--output", "same.json.gz")
    assert (exit_code, out) == (0, "Baseline: same.json.gz\n")
    assert (tmp_path / "same.json.gz").read_bytes() == before
    exit_code, _, error = elliptical_robust("baseline", "run", "--output", frozen)
    assert exit_code == 2
    assert "exists already" in error
    assert frozen.read_bytes() == before
    results = tmp_path / "run" / "results.json"
    results.write_text(results.read_text().replace('"complete": true', '"complete": false'))
    exit_code, _, error = elliptical_robust("baseline", "run", "--output", "new.json")
    assert exit_code == 2
    assert "interrupted" in error
    assert not (tmp_path / "new.json").exists()


def test_a_noise_control_is_checked_only_if_the_rules_name_it(
    elliptical_robust, words, planted, tmp_path
):
    attacks = ("--attack", "fgsm", "--attack", "noise", "--epsilon", "2/255")
    data = ("--data", f"npz:{planted / 'images.npz'}", "--limit", "60")
    run = ("eval", "--model", words("tiny"), *attacks, *data, "--output", "run", "--quiet")
    assert elliptical_robust(*run)[0] == 0
    assert elliptical_robust("baseline", "run", "--output", "base.json")[0] == 0
    check = ("check", words("tiny"), "--baseline", "base.json", "--json")
    (tmp_path / "gate.toml").write_text('[gate.attacks.noise]\nmax_drop = "3 pp"')
    for rules, more in (((), set()), (("--rules", "gate.toml"), {"noise"})):
        out = elliptical_robust(*check, *rules)[1]
        titles = {each["attack"] for each in json.loads(out)["checks"]}
        assert titles == {"clean", "fgsm"} | more


def test_several_models_in_a_baseline(frozen):
    def doubled(document):
        task = document["results"]["tasks"][0]
        task["models"].append(task["models"][0] | {"name": "other"})
        document["samples"].append(document["samples"][0] | {"model": "other"})

    baseline = read_baseline(edited(frozen, doubled))

    def chosen(name, against=None):
        return reference_model(baseline, "image-classification", name, against).name

    assert chosen("new", "other") == "other"
    assert chosen("other") == "other"
    assert chosen("other,checkpoint=epoch9") == "other"
    with pytest.raises(UsageError, match="models tiny, other, none named new; choose one"):
        chosen("new")
    with pytest.raises(UsageError, match="no model for language-modelling"):
        reference_model(baseline, "language-modelling", "new", None)

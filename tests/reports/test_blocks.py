"""Which models are brought together, and which results are refused."""

import json

import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks import ImageUnit, gather, read_runs
from robustbench_elliptical.reports.blocks.outcomes import ABSENT, FOOLED, ROBUST, SKIPPED

EIGHT = 8 / 255


def blocks_of(*folders):
    return gather(read_runs(folders))


@pytest.fixture
def run(make, tmp_path):
    """Write a run of some models; `name` is its folder."""

    def write(name="one", models=("a", "b"), **options):
        records = [make.model_record(each) for each in models]
        options.setdefault("strengths", [0.3 + 0.2 * place for place in range(len(models))])
        options.setdefault("epsilons", (EIGHT,))
        options.setdefault("n", 40)
        return make.write(tmp_path / name, make.image_evaluation(records, **options))

    return write


def change(folder, edit):
    path = folder / "results.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def test_one_run_is_one_block(run):
    (block,) = blocks_of(run())
    assert [entry.label for entry in block.entries] == ["a", "b"]
    titles = [unit.title for unit in block.units()]
    assert titles == ["clean", "noise 8/255", "fgsm 8/255", "pgd 8/255", "worst-case 8/255"]
    assert len(block.samples) == 40
    assert block.notes == []


def test_the_worst_case_is_that_of_the_run(run):
    folder = run()
    (block,) = blocks_of(folder)
    summaries = json.loads((folder / "results.json").read_text())["tasks"][0]["summaries"]
    for entry in block.entries:
        (summary,) = [
            each
            for each in summaries
            if each["model"] == entry.label and each["attack"] == "worst-case"
        ]
        unit = next(unit for unit in entry.codes if unit.attack == "worst-case")
        codes = entry.codes[unit]
        counts = [int((codes == code).sum()) for code in (ROBUST, FOOLED, SKIPPED)]
        assert counts == [summary[name] for name in ("robust", "fooled", "skipped")]


def test_models_on_the_same_images_meet_across_runs(run):
    (block,) = blocks_of(run("one", ("a",)), run("two", ("b", "c")))
    assert [entry.label for entry in block.entries] == ["a", "b", "c"]


def test_samples_are_paired_by_id_whatever_their_order(run, make):
    one, two = run("one", ("a",)), run("two", ("b",), seed=0)
    (before,) = blocks_of(one, two)
    path = two / "samples.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *reversed(rows)]) + "\n")
    (after,) = blocks_of(one, two)
    for entry, same in zip(after.entries, before.entries, strict=True):
        for unit, codes in entry.codes.items():
            np.testing.assert_array_equal(codes, same.codes[unit])


def test_other_images_are_another_block(run):
    blocks = blocks_of(run("one"), run("two", data="npz:x.npz"))
    assert [block.name for block in blocks] == ["fashion-mnist", "npz:x.npz"]


def test_the_same_folder_twice(run):
    folder = run()
    with pytest.raises(UsageError, match=r"each result folder once, got .*one twice; leave one"):
        read_runs([folder, folder.parent / "." / "one"])


def test_the_same_model_under_the_same_attack_twice(run):
    with pytest.raises(UsageError, match=r"model 'a' .* met 'fgsm 8/255' in both .*one and .*two"):
        blocks_of(run("one", ("a",)), run("two", ("a",), seed=0))


def test_attacks_on_the_same_model_are_merged(run):
    one = run("one", ("a", "b"), attacks=("fgsm",))
    (block,) = blocks_of(one, run("two", ("a",), attacks=("pgd",), command="other"))
    first, second = block.entries
    assert [unit.attack for unit in first.codes] == ["clean", "noise", "fgsm", "pgd", "worst-case"]
    assert [unit.attack for unit in second.codes] == ["clean", "noise", "fgsm"]
    assert any("Model a is the same in one and two" in note for note in block.notes)
    worst = ImageUnit("worst-case", "linf", round(EIGHT, 12))
    robust = [
        codes == ROBUST for unit, codes in first.codes.items() if unit.attack in ("fgsm", "pgd")
    ]
    np.testing.assert_array_equal(first.codes[worst] == ROBUST, robust[0] & robust[1])
    assert first.costs[worst].forwards == 40 * 22


def test_a_worst_case_of_other_attacks_is_not_compared(run):
    one = run("one", ("a",), attacks=("fgsm", "pgd"))
    (block,) = blocks_of(one, run("two", ("b",), attacks=("fgsm", "spsa")))
    first, second = block.entries
    units = {unit.attack: unit for unit in block.units()}
    assert block.comparable(units["fgsm"], first, second)
    assert not block.comparable(units["worst-case"], first, second)
    assert any("not over the same attacks" in note for note in block.notes)


def test_another_model_of_the_same_name_is_told_apart(run, make, tmp_path):
    other = make.model_record("a", seed=9)
    evaluation = make.image_evaluation([other], strengths=[0.9], epsilons=(EIGHT,), n=40)
    (block,) = blocks_of(run("one", ("a",)), make.write(tmp_path / "two", evaluation))
    assert [entry.label for entry in block.entries] == ["a", "a (two)"]


def test_an_attack_of_the_same_label_but_other_settings_is_told_apart(run):
    def stronger(document):
        document["tasks"][0]["attacks"][1]["settings"]["steps"] = 50

    one, two = run("one", ("a",)), run("two", ("b",))
    change(two, stronger)
    (block,) = blocks_of(one, two)
    assert list(block.attacks) == ["noise", "fgsm", "pgd", "fgsm (two)"]
    assert [unit.attack for unit in block.entries[1].codes][2] == "fgsm (two)"
    assert any("other settings in two" in note for note in block.notes)


def test_folders_of_one_name_are_told_apart(run):
    runs = read_runs([run("x/run", ("a",)), run("y/run", ("b",))])
    assert [each.label for each in runs] == ["run", "run (2)"]


def test_an_interrupted_run_stays_together(run):
    folder = run("one", ("a", "b"), reached={"b": 15}, complete=False)
    (block,) = blocks_of(folder)
    first, second = block.entries
    assert [len(entry.samples) for entry in block.entries] == [40, 40]
    unit = next(iter(second.codes))
    assert int((second.codes[unit] != ABSENT).sum()) == 15
    assert int((first.codes[unit] != ABSENT).sum()) == 40
    assert any("interrupted" in note and "a 40, b 15" in note for note in block.notes)


def test_a_complete_run_on_other_images_does_not_join(run):
    assert len(blocks_of(run("one", ("a", "b"), reached={"b": 15}))) == 2


def test_findings_follow_their_models(run, make):
    one = run("one", ("a",), findings=[make.finding("a"), make.finding("who")])
    blocks = blocks_of(one, run("two", ("b",), data="other", findings=[make.finding("b")]))
    found = [
        [(entry and entry.label, finding.model) for _, entry, finding in block.findings]
        for block in blocks
    ]
    assert found == [[("a", "a"), (None, "who")], [("b", "b")]]


def test_language_models_meet_by_document(make, tmp_path):
    records = [make.model_record(name, task="language-modelling") for name in ("a", "b")]
    folders = [
        make.write(tmp_path / record.name, make.text_evaluation([record], means=[4 + place]))
        for place, record in enumerate(records)
    ]
    (block,) = blocks_of(*folders)
    assert [entry.label for entry in block.entries] == ["a", "b"]
    assert [unit.title for unit in block.units()] == [
        "clean",
        "word-swap 1 %",
        "word-swap 2.5 %",
        "word-swap 5 %",
    ]
    again = make.write(tmp_path / "again", make.text_evaluation(records[:1], means=[4]))
    with pytest.raises(UsageError, match=r"model 'a' .* met 'word-swap 1 %' in both"):
        blocks_of(folders[0], again)


def test_another_protocol_is_another_model(make, tmp_path):
    record = make.model_record("a", task="language-modelling")
    folders = [
        make.write(tmp_path / str(window), make.text_evaluation([record], means=[4], window=window))
        for window in (256, 512)
    ]
    (block,) = blocks_of(*folders)
    assert [entry.label for entry in block.entries] == ["a", "a (512)"]
    assert any("not measured in the same way" in n or "same way" in n for n in block.notes)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d["tasks"][0]["summaries"][2].update(robust=1), "has .* robust for 'a' under"),
        (lambda d: d["tasks"][0]["data"].pop(), "model 'b' has no data"),
        (lambda d: d["tasks"][0]["attacks"].pop(), "attack 'pgd' is not among its attacks"),
        (lambda d: d.update(schema_version=3), "schema version 3, this package reads up to 2"),
        (lambda d: d.pop("run"), "are broken: run: Field required"),
        (lambda d: d["tasks"][0].update(models=[], summaries=[]), "at least one model"),
    ],
)
def test_broken_records(run, edit, message):
    folder = run()
    change(folder, edit)
    with pytest.raises(UsageError, match=message):
        blocks_of(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text + text.splitlines()[-1] + "\n", "has a sample twice for model 'b'"),
        (lambda text: text.replace("fooled", "fold"), "unknown outcome 'fold'"),
        (lambda text: text.replace("outcome", "result"), "are broken"),
        (lambda text: text.replace(",0.0,", ",zero,", 1), "are broken"),
        (lambda text: "", "are broken"),
    ],
)
def test_broken_rows(run, edit, message):
    folder = run()
    path = folder / "samples.csv"
    path.write_text(edit(path.read_text()))
    with pytest.raises(UsageError, match=message):
        blocks_of(folder)


def test_missing_files(run, tmp_path):
    with pytest.raises(UsageError, match="RUN must be a folder that `eval` wrote; cannot read"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(UsageError, match="at least one result folder"):
        read_runs([])
    folder = run()
    (folder / "samples.csv").unlink()
    with pytest.raises(UsageError, match=r"cannot read results .*samples\.csv: No such file"):
        blocks_of(folder)
    (folder / "results.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="are broken"):
        read_runs([folder])


def test_documents_that_contradict_their_summary(make, tmp_path):
    record = make.model_record("a", task="language-modelling")
    folder = make.write(tmp_path / "one", make.text_evaluation([record], means=[4]))
    path = folder / "documents.csv"
    path.write_text(path.read_text().replace(",scored,", ",failed,", 1))
    with pytest.raises(UsageError, match="don't give the perplexity"):
        blocks_of(folder)
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *rows, rows[0]]))
    with pytest.raises(UsageError, match="a document stands twice"):
        blocks_of(folder)

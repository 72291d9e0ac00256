"""The inside of the models: whose records come into a report, and the numbers it gives."""

import csv
import json
import math

import insides
import numpy as np
import pytest
from scipy.stats import t as student
from synthetic import image_evaluation, model_record, write

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports import write_report
from robustbench_elliptical.reports.blocks import ImageUnit, gather, read_runs
from robustbench_elliptical.reports.contents import build_report
from robustbench_elliptical.reports.contents.inside import joint_strongest, sizes, strongest
from robustbench_elliptical.results import Estimate

EIGHT = 8 / 255
FRAMES = ("token-similarity", "attention-iou", "metric", "metric-change")


def evaluation(names=("softmax", "elliptical"), *, attacks=("fgsm", "pgd"), **options):
    records = [model_record(name) for name in names]
    strengths = np.linspace(0.3, 0.7, len(names))
    return image_evaluation(records, strengths=strengths, attacks=attacks, n=60, **options)


def changed(base, **fields):
    """The same results with other fields of the task."""
    task = base.results.images.model_copy(update=fields)
    return base._replace(results=base.results.model_copy(update={"tasks": [task]}))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write(tmp_path_factory.mktemp("inside") / "run", insides.with_inside(evaluation()))


def blocks_of(*folders):
    return gather(read_runs(folders))


def section_of(*folders):
    runs = read_runs(folders)
    return build_report(runs, gather(runs)).sections[0]


def expected(run, kind):
    """The rows of a frame, straight from results.json."""
    for record in json.loads((run / "results.json").read_text())["tasks"][0]["internals"]:
        place = (record["model"], record["attack"], record["norm"] or "", record["samples"])
        if kind in ("token-similarity", "attention-iou"):
            for depth, each in enumerate(record[kind.replace("-", "_")]):
                yield (*place, depth, each["mean"], each["low"], each["high"])
        for metric in record["metric"]:
            for head, each in enumerate(metric["change"]):
                if kind == "metric-change":
                    yield (*place, metric["block"], head, each["mean"], each["low"], each["high"])
            for head, values in enumerate(metric["mean"]):
                for component, value in enumerate(values):
                    if kind == "metric" and record["attack"] == "clean":
                        yield (*place, metric["block"], head, component, value)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_hold_the_records(run, kind):
    frame = section_of(run).frames[kind]
    assert not frame.empty
    own = frame.drop(columns="epsilon")
    assert sorted(own.itertuples(index=False, name=None)) == sorted(expected(run, kind))
    assert set(frame["epsilon"]) <= {0.0, *(round(k / 255, 12) for k in (2, 4, 8))}


def test_files_hold_the_frames(run, tmp_path):
    write_report([run], tmp_path / "report")
    section = json.loads((tmp_path / "report" / "report.json").read_text())["sections"][0]
    for name, frame in section_of(run).frames.items():
        if name in FRAMES:
            path = tmp_path / "report" / "tables" / f"fashion-mnist-{name}.csv"
            rows = list(csv.DictReader(path.read_text().splitlines()))
            last = frame.columns[-1]
            assert [float(row[last]) for row in rows] == frame[last].tolist()
            assert [row[last] for row in section["tables"][name]] == frame[last].tolist()


def test_the_table_is_about_the_last_block(run):
    section = section_of(run)
    (table,) = [table for table in section.tables if table.name.endswith("inside")]
    assert not table.primary
    assert "pgd 8/255" in table.title
    frame = section.frames["token-similarity"]
    row = frame[(frame["model"] == "elliptical") & (frame["attack"] == "clean")].iloc[-1]
    assert row["depth"] == 4
    cells = {line[0].text: line for line in table.rows}["elliptical"]
    assert [cells[1].text, cells[2].text] == ["24", f"{row['mean']:.3f}"]
    assert cells[2].detail == f"[{row['low']:.3f}, {row['high']:.3f}]"
    frame = section.frames["metric-change"]
    own = frame[(frame["attack"] == "pgd") & (frame["epsilon"] == frame["epsilon"].max())]
    assert cells[5].text == f"{own['mean'].mean():.3f}"
    assert {line[0].text: line for line in table.rows}["softmax"][5].text == "none"


def test_the_mean_of_intervals_is_never_too_narrow():
    rng = np.random.default_rng(0)
    for correlation in (0.0, 0.5, 1.0):
        common = rng.normal(size=(20, 1))
        changes = correlation * common + (1 - correlation) * rng.normal(size=(20, 12))
        factor = student.ppf(0.975, 19) / math.sqrt(20)
        halves = factor * changes.std(axis=0, ddof=1)
        half_of_mean = factor * changes.mean(axis=1).std(ddof=1)
        assert halves.mean() >= half_of_mean - 1e-12


def test_n_is_said_once_or_as_a_range(run):
    frame = section_of(run).frames["metric-change"].copy()
    assert sizes(frame) == "n = 24"
    frame.loc[frame.index[0], "n"] = 20
    assert sizes(frame) == "n = 20 to 24"


def test_the_strongest_attack_is_the_worst_at_the_largest_epsilon(run):
    (block,) = blocks_of(run)
    entry = block.entries[0]
    units = entry.internals
    found = {
        unit: np.mean(entry.codes[unit] == 0)
        for unit in units
        if unit.attack in ("fgsm", "pgd") and math.isclose(unit.epsilon, EIGHT, abs_tol=1e-9)
    }
    assert strongest(entry, units, block.real) == min(found, key=found.get)
    assert strongest(entry, [unit for unit in units if unit.attack == "clean"], block.real) is None
    weak = [unit for unit in units if unit.attack == "fgsm"]
    assert strongest(entry, weak, block.real) == ImageUnit("fgsm", "linf", round(EIGHT, 12))


def test_models_are_compared_at_an_attack_that_most_have(tmp_path):
    """The merged model met pgd too, but the other one was looked into under fgsm only."""
    both = evaluation(attacks=("fgsm",))
    more = evaluation(("softmax",), attacks=("pgd",))
    write(tmp_path / "one", insides.with_inside(both))
    write(tmp_path / "two", insides.with_inside(more, seed=7))
    (block,) = blocks_of(tmp_path / "one", tmp_path / "two")
    assert [len(entry.runs) for entry in block.entries] == [2, 1]
    assert {unit.attack for unit in block.entries[0].internals} == {"clean", "fgsm", "pgd"}
    assert joint_strongest(block) == ImageUnit("fgsm", "linf", round(EIGHT, 12))
    first = json.loads((tmp_path / "one" / "results.json").read_text())["tasks"][0]["internals"][0]
    clean = block.entries[0].internals[ImageUnit("clean", None, 0.0)]
    assert clean.model_dump() == first
    assert len(section_of(tmp_path / "one", tmp_path / "two").figures) > 0


def test_an_attack_with_other_settings_keeps_its_inside_apart(tmp_path):
    one = insides.with_inside(evaluation(("softmax",), attacks=("pgd",)))
    other = evaluation(("softmax",), attacks=("pgd",))
    attack = other.results.images.attacks[1].model_copy(update={"settings": {"steps": 99}})
    other = changed(other, attacks=[other.results.images.attacks[0], attack])
    write(tmp_path / "one", one)
    write(tmp_path / "two", insides.with_inside(other))
    (block,) = blocks_of(tmp_path / "one", tmp_path / "two")
    (entry,) = block.entries
    assert {unit.attack for unit in entry.internals} == {"clean", "pgd", "pgd (two)"}
    folders = {unit.attack: stored[0].folder.name for unit, stored in entry.pictures.items()}
    assert folders == {"pgd": "one", "pgd (two)": "two"}


def test_without_insides_nothing_changes(tmp_path):
    write(tmp_path / "run", evaluation())
    section = section_of(tmp_path / "run")
    assert not {*FRAMES} & section.frames.keys()
    assert not [table for table in section.tables if "inside" in table.name]
    assert all("-accuracy-" in figure.name for figure in section.figures)


def test_a_run_of_before_has_none(tmp_path):
    folder = write(tmp_path / "run", evaluation())
    document = json.loads((folder / "results.json").read_text())
    for name in ("internals", "pictures"):
        del document["tasks"][0][name]
    (folder / "results.json").write_text(json.dumps(document))
    assert not {*FRAMES} & section_of(folder).frames.keys()


def test_a_model_that_could_not_be_looked_into_is_left_out(tmp_path):
    write(tmp_path / "run", insides.with_inside(evaluation(), only=["softmax"]))
    section = section_of(tmp_path / "run")
    (table,) = [table for table in section.tables if table.name.endswith("inside")]
    assert [row[0].text for row in table.rows] == ["softmax"]
    assert "metric" not in section.frames


def test_no_image_averaged_is_no_number(tmp_path):
    made = insides.with_inside(evaluation(), shown=0)
    records = made.results.images.internals
    empty = [each.model_copy(update={"samples": 0}) for each in records]
    write(tmp_path / "run", changed(made, internals=empty))
    assert not {*FRAMES} & section_of(tmp_path / "run").frames.keys()


def broken(record, kind):
    metric = [each.model_copy() for each in record.metric]
    if kind == "finite":
        return {"token_similarity": [Estimate(mean=math.inf, low=0, high=1)]}
    if kind == "heads":
        metric[0].mean = [[1.0], [1.0, 0.5]]
    elif kind == "empty":
        metric[0].mean = [[], []]
    elif kind == "change":
        metric[0].change = metric[0].change[:1]
    else:
        metric[0].block = metric[1].block
    return {"metric": metric}


@pytest.mark.parametrize(
    ("kind", "words"),
    [("finite", "not finite"), ("heads", "heads don't match"), ("empty", "heads don't match"),
     ("change", "heads don't match"), ("blocks", "two metrics of one block")],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(tmp_path, kind, words):
    made = insides.with_inside(evaluation(), shown=0)
    records = made.results.images.internals
    last = records[-1]
    assert last.model == "elliptical"
    records = [*records[:-1], last.model_copy(update=broken(last, kind))]
    folder = write(tmp_path / "run", changed(made, internals=records))
    if kind == "finite":
        text = (folder / "results.json").read_text()
        assert '"mean": null' in text or "Infinity" in text
        (folder / "results.json").write_text(text.replace('"mean": null', '"mean": Infinity'))
    with pytest.raises(UsageError, match=words):
        blocks_of(folder)


def test_the_same_cell_twice_is_refused(tmp_path):
    made = insides.with_inside(evaluation(), shown=0)
    records = made.results.images.internals
    write(tmp_path / "run", changed(made, internals=[*records, records[0]]))
    with pytest.raises(UsageError, match="'clean' is there twice; evaluate again"):
        blocks_of(tmp_path / "run")

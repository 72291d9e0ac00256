"""Published numbers stand beside ours only where they are about the same thing."""

import tomllib

import pandas as pd
import pytest

from robustbench_elliptical.core.resources import shipped

ONE = 1 / 255
TINY = {
    "num_classes": 1000,
    "architecture": {"embed_dim": 192, "depth": 12, "num_heads": 3},
}


@pytest.fixture
def published(make, tmp_path, built):
    """The section of a DeiT-tiny evaluation."""

    def build(attention="softmax", data="imagefolder:/data/ImageNet/val", epsilon=ONE, **facts):
        description = {**TINY, "attention": attention, **facts}
        record = make.model_record("tiny", **description)
        evaluation = make.image_evaluation(
            [record], strengths=[0.5], attacks=("pgd", "spsa"), epsilons=(epsilon,), data=data
        )
        folder = make.write(tmp_path / f"run{len(list(tmp_path.iterdir()))}", evaluation)
        (section,) = built(folder).sections
        return section

    return build


def test_numbers_of_the_same_model_data_attack_and_size(published):
    section = published()
    frame = section.frames["published"]
    paper = frame[frame["second_hand"]]
    assert dict(zip(paper["attack"], paper["published"], strict=True)) == {
        "clean": 72.23,
        "spsa": 48.34,
    }
    logs = frame[~frame["second_hand"]]
    assert set(logs["published_attack"]) == {
        "clean",
        "pgd eps=1/255 (normalised units; new_attack series)",
    }
    assert (frame["protocol"].str.len() > 20).all()
    (table,) = [each for each in section.tables if each.name.endswith("-published")]
    details = [row[3].detail for row in table.rows]
    assert details.count("second-hand") == len(paper)
    assert any("No published number enters a statistic" in note for note in table.notes)


def test_elliptical_ones_by_their_scaling(published):
    found = published("elliptical", attention_settings={"scaling": "max"}).frames["published"]
    assert 56.55 in set(found["published"])
    assert {"DeiT-Elliptical"} == set(found["published_model"])
    found = published("elliptical", attention_settings={"scaling": "mean"}).frames["published"]
    assert set(found["published_model"]) == {"Mfull-tiny-delta5-meanscale"}
    assert found["published"].tolist() == [43.344]


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "fashion-mnist"},
        {"attention": "reformer"},
        {"num_classes": 10},
        {"architecture": {"embed_dim": 384, "depth": 12}},
    ],
)
def test_nothing_of_another_model_or_data(published, changes):
    assert "published" not in published(**changes).frames


def test_nothing_of_another_size(published):
    frame = published(epsilon=8 / 255).frames["published"]
    assert set(frame["attack"]) == {"clean"}


def test_a_library_model(published):
    facts = {"architecture": {"name": "deit_tiny_patch16_224.fb_in1k"}, "attention": None}
    assert "published" in published(**facts).frames


def test_language_models(make, tmp_path, built):
    records = [
        make.model_record("lm-softmax", task="language-modelling"),
        make.model_record("lm-elliptical", task="language-modelling"),
    ]
    evaluation = make.text_evaluation(records, means=[3.6, 3.5], data="wikitext:/data/wikitext-103")
    (section,) = built(make.write(tmp_path / "run", evaluation)).sections
    frame = section.frames["published"]
    assert frame["published"].tolist() == [34.29, 32.0, 52.59]
    assert frame["attack"].tolist() == ["clean", "clean", "word-swap"]
    assert frame["size"].tolist() == ["", "", "2.5 %"]
    assert frame["second_hand"].all()


def test_they_change_no_statistic(published):
    with_them, without = published(), published(num_classes=10)
    for name in ("accuracy", "cost"):
        pd.testing.assert_frame_equal(with_them.frames[name], without.frames[name])


def test_the_index_is_sound():
    folder = shipped("reports/published")
    index = tomllib.loads((folder / "index.toml").read_text())
    for source in index["sources"]:
        frame = pd.read_csv(folder / source["file"])
        assert set(source["models"]) <= set(frame["model"])
        assert set(source["models"].values()) <= set(index["kinds"])
        assert source["protocol"]
    assert {path.name for path in folder.glob("*.csv")} == {
        source["file"] for source in index["sources"]
    }

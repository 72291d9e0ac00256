"""Pictures beside a result: read back whole, refused in one sentence if they are none."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.results import PictureRecord, read_results, write_results
from robustbench_elliptical.results.pictures import PICTURES_FILE

KEY = "0-0"


@pytest.fixture
def folder(evaluation, tmp_path):
    """A result with one picture, attention included."""
    generator = np.random.default_rng(0)
    arrays = {
        f"{KEY}/{side}{name}": generator.uniform(0, 1, shape).astype(np.float16)
        for side in ("clean", "attacked")
        for name, shape in (("", (1, 4, 4)), ("-attention", (2, 2)))
    }
    images = evaluation.results.images
    record = PictureRecord(
        key=KEY,
        model=images.models[0].name,
        attack="pgd",
        norm="linf",
        epsilon=0.1,
        sample_id="001",
        label=0,
        clean_prediction=0,
        prediction=1,
    )
    task = images.model_copy(update={"pictures": [record]})
    results = evaluation.results.model_copy(update={"tasks": [task]})
    changed = evaluation._replace(results=results, pictures=arrays)
    write_results(tmp_path / "run", changed, str)
    return tmp_path / "run"


def test_they_are_read_back(folder):
    arrays = load_file(folder / PICTURES_FILE)
    back = read_results(folder).pictures
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert array.dtype == back[name].dtype == np.float16
        np.testing.assert_array_equal(back[name], array)
    assert (folder / PICTURES_FILE).stat().st_mode & 0o777 == 0o644


def test_pictures_without_attention_are_whole(folder):
    arrays = load_file(folder / PICTURES_FILE)
    save_file(
        {name: each for name, each in arrays.items() if "attention" not in name},
        folder / PICTURES_FILE,
    )
    assert sorted(read_results(folder).pictures) == [f"{KEY}/attacked", f"{KEY}/clean"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop(f"{KEY}/clean"), "0-0/clean is missing"),
        (lambda a: a.pop(f"{KEY}/clean-attention"), "0-0/clean-attention is missing"),
        (
            lambda a: a.update({f"{KEY}/clean": np.ones((1, 4, 4))}),
            r"0-0/clean must be float16 of 3 axes, got float64 of shape \(1, 4, 4\)",
        ),
        (
            lambda a: a.update({f"{KEY}/attacked": np.ones((1, 4, 3), np.float16)}),
            "0-0/attacked must have the shape of 0-0/clean",
        ),
        (
            lambda a: a.update({f"{KEY}/clean": np.full((1, 4, 4), np.nan, np.float16)}),
            r"0-0/clean must lie in \[0, 1\]",
        ),
        (
            lambda a: a.update({f"{KEY}/clean": np.ones((1, 0, 4), np.float16)}),
            "0-0/clean must be float16 of 3 axes",
        ),
    ],
)
def test_what_is_no_picture_is_refused(folder, change, message):
    arrays = dict(load_file(folder / PICTURES_FILE))
    change(arrays)
    save_file(arrays, folder / PICTURES_FILE)
    with pytest.raises(UsageError, match=message):
        read_results(folder)


def header(**entries):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        struct.pack("<Q", 2**60) + b"{}",
        header(a={"dtype": "F16", "shape": [10**9, 10**9], "data_offsets": [0, 2]}) + b"\0\0",
        header(a={"dtype": "F16", "shape": [1], "data_offsets": [0, 10**15]}),
    ],
)
def test_a_hostile_file_is_one_sentence(folder, content):
    (folder / PICTURES_FILE).write_bytes(content)
    with pytest.raises(UsageError, match=r"are broken: pictures\.safetensors"):
        read_results(folder)


def test_a_missing_file_is_one_sentence(folder):
    (folder / PICTURES_FILE).unlink()
    with pytest.raises(UsageError, match=r"cannot read results .*pictures\.safetensors"):
        read_results(folder)

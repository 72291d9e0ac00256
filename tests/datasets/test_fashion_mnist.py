import gzip
import hashlib
import os
import runpy
import struct
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import robustbench_elliptical.data
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import EmbeddedFashionMnist, FashionMnist, load_data, select

FILE = (
    Path(robustbench_elliptical.data.__file__).parent / "embedded" / "fashion-mnist-test-2000.npz"
)
SHA256 = "b3719b58277abd0f8098ac5fef81746e6e711c4b1a1c35c21ed7741e630837ee"
FULL = Path("/usr/share/datasets/fashion-mnist")


def write_set(folder, prefix="t10k", images=None, labels=None):
    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (40, 6, 5), dtype=np.uint8) if images is None else images
    labels = np.arange(len(images), dtype=np.uint8) % 10 if labels is None else labels
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        (folder / f"{prefix}-{name}-ubyte.gz").write_bytes(gzip.compress(header + array.tobytes()))
    return images, labels


def everything(data, batch_size=300):
    batches = list(data.batches(range(len(data)), batch_size))
    return np.concatenate([batch.images.numpy() for batch in batches])


def test_embedded_file_is_the_committed_one():
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
    assert FILE.stat().st_size < 1_000_000


def test_embedded_set_equals_an_independent_reading_of_its_file():
    data = load_data("fashion-mnist", num_classes=10)
    assert isinstance(data, EmbeddedFashionMnist)
    assert data.name == "fashion-mnist"
    assert data.image_shape == (1, 28, 28)
    assert data.class_names[9] == "ankle boot"
    with np.load(FILE, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(data.labels, arrays["labels"])
        assert list(data.sample_ids) == arrays["sample_ids"].tolist()
        expected = arrays["images"][:, None].astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(everything(data), expected)


def test_embedded_set_is_balanced_and_in_order():
    data = EmbeddedFashionMnist()
    assert Counter(data.labels.tolist()) == dict.fromkeys(range(10), 200)
    assert list(data.sample_ids) == sorted(data.sample_ids)
    assert all(each.startswith("fashion-mnist/test/0") for each in data.sample_ids)


def test_embedded_set_is_streamed():
    tracemalloc.start()
    data = EmbeddedFashionMnist()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    for batch in data.batches(range(2000), 50):
        del batch
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < 2000 * 28 * 28 / 2


@pytest.mark.skipif(not FULL.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_embedded_set_is_part_of_the_full_set():
    data = EmbeddedFashionMnist()
    places = [int(each.removeprefix("fashion-mnist/test/")) for each in data.sample_ids]
    with gzip.open(FULL / "t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(10000, 1, 28, 28)
    with gzip.open(FULL / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    np.testing.assert_array_equal(data.labels, labels[places])
    expected = images[places].astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(everything(data), expected)
    full = FashionMnist(FULL)
    assert select(full, 2000, 0) == places
    # The seed that made the embedded set chooses the same samples from both.
    small = [data.sample_ids[index] for index in select(data, 500, 0)]
    assert small == [full.sample_ids[index] for index in select(full, 500, 0)]


def test_the_script_makes_the_same_bytes_twice(tmp_path, capsys):
    write_set(tmp_path)
    script = Path(__file__).parents[2] / "scripts" / "make_embedded_fashion_mnist.py"
    main = runpy.run_path(str(script))["main"]
    main.__globals__["COUNT"] = 40
    main(tmp_path, tmp_path / "a.npz")
    main(tmp_path, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert hashlib.sha256((tmp_path / "a.npz").read_bytes()).hexdigest() in capsys.readouterr().out


@pytest.mark.parametrize("split", ["test", "train"])
def test_full_set_reads_a_folder_of_idx_files(tmp_path, split):
    images, labels = write_set(tmp_path, "t10k" if split == "test" else "train")
    data = load_data(f"fashion-mnist:{tmp_path}", split=split, num_classes=10)
    np.testing.assert_array_equal(everything(data, 7), images[:, None] / np.float32(255))
    np.testing.assert_array_equal(data.labels, labels)
    assert data.sample_ids[12] == f"fashion-mnist/{split}/00012"
    assert data.image_shape == (1, 6, 5)
    assert len(data) == 40


def test_home_folder_is_expanded(tmp_path, monkeypatch):
    write_set(tmp_path)
    monkeypatch.setitem(os.environ, "HOME", str(tmp_path))
    assert len(load_data("fashion-mnist:~")) == 40


def test_embedded_set_has_no_training_part():
    with pytest.raises(UsageError, match=r"split 'train'; .*fashion-mnist:DIR.*dataset-fashion-mn"):
        load_data("fashion-mnist", split="train")


def test_missing_files_and_folders_name_the_way_out(tmp_path):
    with pytest.raises(UsageError, match=r"labels-idx1-ubyte\[.gz\] is missing.*dataset-fashion"):
        load_data(f"fashion-mnist:{tmp_path}")
    with pytest.raises(UsageError, match=r"nowhere does not exist; .*fashion-mnist:DIR"):
        load_data(f"fashion-mnist:{tmp_path / 'nowhere'}")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="file is not a folder; "):
        load_data(f"fashion-mnist:{file}")


def test_images_and_labels_must_agree(tmp_path):
    write_set(tmp_path, labels=np.zeros(39, np.uint8))
    with pytest.raises(UsageError, match=r"got \(40, 6, 5\) and \(39,\)"):
        FashionMnist(tmp_path)
    write_set(tmp_path, images=np.zeros((40, 6), np.uint8))
    with pytest.raises(UsageError, match=r"images must have the shape \(n, h, w\)"):
        FashionMnist(tmp_path)
    write_set(tmp_path, labels=np.full(40, 10, np.uint8))
    with pytest.raises(UsageError, match=r"labels must lie in 0\.\.9, got 10"):
        FashionMnist(tmp_path)

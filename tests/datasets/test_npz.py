import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import NpzData, load_data

LABELS = np.array([0, 2, 1, 0, 2, 1, 1])
BYTES = np.random.default_rng(0).integers(0, 256, (7, 6, 5), dtype=np.uint8)


def write(folder, **arrays):
    path = folder / "set.npz"
    np.savez(path, **{"images": BYTES, "labels": LABELS, **arrays})
    return path


def pixels(data, batch_size=3):
    return np.concatenate(
        [batch.images.numpy() for batch in data.batches(range(len(data)), batch_size)]
    )


def refuse(path, problem):
    with pytest.raises(UsageError, match=problem) as caught:
        pixels(NpzData(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    ("shape", "order", "expected"),
    [
        ((4, 6, 5), (0, 1, 2), (1, 6, 5)),
        ((4, 3, 6, 5), (0, 1, 2, 3), (3, 6, 5)),
        ((4, 1, 6, 5), (0, 1, 2, 3), (1, 6, 5)),
        ((4, 6, 5, 3), (0, 3, 1, 2), (3, 6, 5)),
        ((4, 6, 5, 1), (0, 3, 1, 2), (1, 6, 5)),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "<f4", ">f4", "<f2", ">f2", "<f8", ">f8"])
def test_every_layout_and_dtype_equals_numpy_load(tmp_path, save, shape, order, expected, dtype):
    images = np.random.default_rng(3).integers(0, 256, shape)
    images = images.astype(dtype) if dtype == "u1" else (images / 255).astype(dtype)
    path = tmp_path / "set.npz"
    save(path, images=images, labels=np.array([0, 1, 1, 0], dtype=">i2"))
    data = NpzData(path)
    with np.load(path, allow_pickle=False) as arrays:
        loaded = arrays["images"].transpose(order).reshape(4, *expected).astype(np.float32)
    oracle = loaded / np.float32(255) if dtype == "u1" else loaded
    assert data.image_shape == expected
    got = pixels(data)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, oracle)
    assert data.labels.dtype == np.int64
    assert data.labels.tolist() == [0, 1, 1, 0]


def test_ids_classes_and_name_have_defaults(tmp_path):
    path = write(tmp_path)
    data = load_data(f"npz:{path}")
    assert data.sample_ids[3] == "npz/set/000003"
    assert data.num_classes == 3
    assert data.class_names is None
    assert data.name == f"npz:{path}"


def test_ids_and_classes_may_be_given(tmp_path):
    names = np.array(["cat", "dog", "eel", "fox"])
    path = write(tmp_path, sample_ids=np.array(list("abcdefg")), class_names=names, num_classes=4)
    data = load_data(f"npz:{path}", num_classes=4)
    assert list(data.sample_ids) == list("abcdefg")
    assert list(data.class_names) == names.tolist()
    assert data.num_classes == 4
    assert NpzData(write(tmp_path, class_names=names)).num_classes == 4


def test_classes_of_the_model_hold_unless_the_file_states_others(tmp_path):
    assert load_data(f"npz:{write(tmp_path)}", num_classes=1000).num_classes == 1000
    with pytest.raises(UsageError, match=r"labels must lie in 0..1, got 2"):
        load_data(f"npz:{write(tmp_path)}", num_classes=2)
    path = write(tmp_path, num_classes=np.array([5]))
    with pytest.raises(UsageError, match="has 5 classes but the model has 1000; choose"):
        load_data(f"npz:{path}", num_classes=1000)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_are_streamed(tmp_path, save):
    images = np.random.default_rng(0).integers(0, 256, (4000, 32, 32), dtype=np.uint8)
    path = tmp_path / "set.npz"
    save(path, images=images, labels=np.zeros(4000, np.int64))
    tracemalloc.start()
    data = NpzData(path)
    for batch in data.batches(range(0, 4000, 8), 10):
        del batch
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < images.nbytes / 2


def test_going_back_reads_again(tmp_path):
    data = NpzData(write(tmp_path))
    for indices in ([5, 6], [0, 2], [6], [1]):
        (batch,) = data.batches(indices, 9)
        np.testing.assert_array_equal(batch.images[:, 0], BYTES[indices] / np.float32(255))


def test_one_long_side_may_be_in_fortran_order(tmp_path):
    data = NpzData(write(tmp_path, images=np.asfortranarray(np.ones((7, 1, 1)))))
    assert pixels(data).sum() == 7


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"images": np.asfortranarray(BYTES)}, "Fortran order.*np.ascontiguousarray"),
        ({"images": np.array([None] * 7)}, "images has dtype object"),
        ({"images": BYTES > 9}, r"uint8 \(0-255\) or floats in \[0, 1\], got bool"),
        ({"images": BYTES.astype(np.int64)}, "got int64; convert"),
        ({"images": BYTES.astype(np.longdouble)}, "got float128; convert|got longdouble"),
        ({"images": BYTES.astype(np.float32)}, r"finite and lie in \[0, 1\].*npz/set/000000"),
        ({"images": np.full((7, 2, 2), 1e300)}, r"finite and lie in \[0, 1\]"),
        ({"images": np.full((7, 2, 2), np.nan)}, r"finite and lie in \[0, 1\]"),
        ({"images": np.zeros((7, 3, 8, 3))}, r"\(7, 3, 8, 3\) may be .* store \(n, c, h, w\)"),
        ({"images": np.zeros((7, 2, 8, 4))}, r"with 1 or 3 channels, got \(7, 2, 8, 4\)"),
        ({"images": np.zeros((7, 4))}, r"must have the shape \(n, h, w\)"),
        ({"images": np.array(0.5)}, r"must have the shape .*, got \(\)"),
        ({"images": np.zeros((7, 0, 4))}, "images must have pixels"),
        ({"images": np.zeros((0, 4, 4)), "labels": LABELS[:0]}, "has no samples"),
        ({"labels": LABELS[:5]}, r"labels must be integers of shape \(7,\).*of shape \(5,\)"),
        ({"labels": LABELS / 2}, r"labels must be integers of shape \(7,\).*got float64"),
        ({"labels": LABELS - 1}, r"labels must lie in 0..1, got -1"),
        ({"labels": np.full(7, 2**64 - 1, np.uint64)}, "labels must fit int64"),
        ({"num_classes": 2}, r"labels must lie in 0..1, got 2"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"num_classes": 2.5}, "num_classes must be one integer"),
        ({"num_classes": 4, "class_names": np.array(["a", "b", "c"])}, "they must agree"),
        ({"class_names": np.array([1, 2, 3])}, r"class_names must be an array of strings"),
        ({"sample_ids": np.array(list("abcdeff"))}, "unique and not empty, got 'f' twice"),
        ({"sample_ids": np.array(list("abc"))}, r"sample_ids must be .* shape \(7,\)"),
        ({"sample_ids": np.array(list("abcdefg"), object)}, "sample_ids has dtype object"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, arrays, problem):
    refuse(write(tmp_path, **arrays), problem)


def test_missing_arrays_are_named(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x=BYTES, labels=LABELS)
    refuse(path, "images and labels are required, got labels, x; save with np.savez")


def test_paths_that_are_no_npz_file_are_refused(tmp_path):
    refuse(tmp_path, "is not a file; give an npz file")
    refuse(tmp_path / "none.npz", "none.npz does not exist; give an npz file")
    np.save(tmp_path / "plain.npy", BYTES)
    refuse(tmp_path / "plain.npy", "plain.npy is broken: File is not a zip file")
    (tmp_path / "noise.npz").write_bytes(np.random.default_rng(0).bytes(5000))
    refuse(tmp_path / "noise.npz", "broken")


def test_truncated_file_is_refused(tmp_path):
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    refuse(path, "set.npz is broken")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_flipped_bit_is_noticed(tmp_path, save):
    path = tmp_path / "set.npz"
    save(path, images=BYTES, labels=LABELS)
    content = bytearray(path.read_bytes())
    content[240] ^= 4
    path.write_bytes(content)
    refuse(path, "broken: (Bad CRC|Error|array)")


def test_random_damage_never_escapes_as_another_error(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=BYTES, labels=LABELS, sample_ids=np.array(list("abcdefg")))
    generator = np.random.default_rng(5)
    path = tmp_path / "set.npz"
    refused = 0
    for _ in range(80):
        content = bytearray(buffer.getvalue())
        content[generator.integers(len(content))] = generator.integers(256)
        path.write_bytes(content)
        try:
            pixels(NpzData(path))
        except UsageError:
            refused += 1
    assert refused > 40


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (999999999999, 999999, 9999), }",
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (7, 6, -5), }",
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (7, 6, 5), }}}}",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (7, 6, 5), }",
        b"{'descr': 'wrong', 'fortran_order': False, 'shape': (7, 6, 5), }",
        b"{" * 9000,
    ],
)
def test_damaged_headers_are_refused_without_allocating(tmp_path, header):
    path = tmp_path / "set.npz"
    labels = io.BytesIO()
    np.save(labels, LABELS)
    images = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + BYTES.tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", images)
        archive.writestr("labels.npy", labels.getvalue())
    refuse(path, "set.npz is broken")


def test_pickles_are_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle ran",))

    refuse(write(tmp_path, images=np.array([Bomb()] * 7, dtype=object)), "dtype object")

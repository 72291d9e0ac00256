import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.idx import IdxReader, read_idx

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 5, 3), dtype=np.uint8)


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture(params=["plain", "gzip"])
def write(request, tmp_path):
    def write_file(content: bytes):
        path = tmp_path / "images"
        path.write_bytes(gzip.compress(content) if request.param == "gzip" else content)
        return path

    return write_file


def last_row(path):
    reader = IdxReader(path)
    return reader.rows([reader.shape[0] - 1])


def test_round_trip(write):
    path = write(idx_bytes(IMAGES))
    np.testing.assert_array_equal(read_idx(path), IMAGES)
    reader = IdxReader(path)
    assert reader.shape == (20, 5, 3)
    np.testing.assert_array_equal(reader.rows(range(20)), IMAGES)


@pytest.mark.parametrize("calls", [[[0, 3], [4, 19]], [[19], [0, 1]], [[5], [5]], [[]]])
def test_any_sequence_of_reads_gives_the_rows(write, calls):
    reader = IdxReader(write(idx_bytes(IMAGES)))
    for indices in calls:
        np.testing.assert_array_equal(reader.rows(indices), IMAGES[np.array(indices, int)])


def test_rows_are_streamed(write):
    many = np.zeros((4000, 32, 32), np.uint8)
    path = write(idx_bytes(many))
    tracemalloc.start()
    reader = IdxReader(path)
    for start in range(0, 4000, 500):
        reader.rows(range(start, start + 10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < many.nbytes / 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "ends before"),
        (b"\x89PNG\r\n\x1a\n" * 9, "not an idx file of unsigned bytes"),
        (struct.pack(">4BI", 0, 0, 0x0D, 1, 2) + bytes(8), "not an idx file of unsigned bytes"),
        (idx_bytes(IMAGES)[:-1], "ends before"),
        (idx_bytes(IMAGES) + b"x", "goes on after"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 1, 2**31, 2**31), "ends before|states the shape"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 28, 28), "ends before"),
        (struct.pack(">4B", 0, 0, 8, 255) + b"\xff" * 1020, "ends before|states the shape"),
    ],
)
def test_broken_files_are_refused_by_name(write, content, problem):
    path = write(content)
    with pytest.raises(UsageError, match=f"images is broken: .*({problem})"):
        read_idx(path)
    with pytest.raises(UsageError, match=f"images is broken: .*({problem})"):
        last_row(path)


def test_flipped_bit_in_gzip_is_noticed(tmp_path):
    content = bytearray(gzip.compress(idx_bytes(IMAGES), compresslevel=0))
    content[60] ^= 1
    path = tmp_path / "images.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="CRC"):
        IdxReader(path).rows(range(20))


def test_truncated_gzip_is_refused(tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx_bytes(IMAGES))[:-20])
    with pytest.raises(UsageError, match="broken"):
        IdxReader(path).rows(range(20))


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*nothing: No such file"):
        IdxReader(tmp_path / "nothing")

"""The authors' whole pickled module, read without running it, and archives that are no such."""

import pickle
import pickletools
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language import (
    convert,
    load_language_weights,
    read_released_module,
)


def records(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def test_the_state_dict_of_the_released_file(vectors):
    state = read_released_module(vectors.folder / "model.pt")
    expected = load_file(vectors.folder / "state_dict.safetensors")
    assert set(state) == set(expected)
    assert all(torch.equal(state[name], expected[name]) for name in expected)


@pytest.mark.parametrize("variant", ["softmax", "elliptical-released"])
def test_the_losses_of_the_released_file(variant, vectors, released_model):
    model = released_model(variant)
    for weights in model.parameters():
        torch.nn.init.zeros_(weights)
    state = convert(vectors.folder / "model.pt", vectors.architecture)
    load_language_weights(model, state, "the conversion")
    with torch.no_grad():
        losses = model.token_losses(vectors.tokens, vectors.targets)
    assert (losses - vectors.losses[variant]).abs().max() < 1e-5


def test_another_architecture_is_told_apart(vectors):
    deeper = vectors.architecture.model_copy(update={"layers": vectors.architecture.layers + 1})
    with pytest.raises(UsageError, match=r"11 missing \(layers\.\d\.dec_attn\.q_net\.weight"):
        convert(vectors.folder / "model.pt", deeper)
    wider = vectors.architecture.model_copy(update={"d_inner": 65})
    with pytest.raises(UsageError, match="of another shape"):
        convert(vectors.folder / "model.pt", wider)


def test_nothing_of_the_released_code_is_imported(vectors, monkeypatch):
    monkeypatch.setattr("builtins.__import__", lambda name, *_: pytest.fail(f"imported {name}"))
    program = records(vectors.folder / "model.pt")
    assert any(b"mem_transformer" in data for data in program.values())
    read_released_module(vectors.folder / "model.pt")


TOUCH = b"cposix\nsystem\n(X%s%stR"


@pytest.mark.parametrize("place", ["before", "after", "inside"])
def test_an_exploit_within_a_released_file(place, vectors, tmp_path):
    mark = tmp_path / "mark"
    command = f"touch {mark}".encode()
    exploit = TOUCH % (struct.pack("<i", len(command)), command)
    contents = records(vectors.folder / "model.pt")
    name = next(each for each in contents if each.endswith("data.pkl"))
    program = contents[name]
    if place == "before":
        program = program[:2] + exploit + b"0" + program[2:]
    elif place == "after":
        program = program[:-1] + exploit + b"0."
    else:
        spot = program.index(b"X\x08\x00\x00\x00_buffers")
        program = program[:spot] + b"X\x0c\x00\x00\x00__setstate__" + exploit + program[spot:]
    with pytest.raises(UsageError, match=r"asks for posix\.system"):
        read_released_module(write(tmp_path / "model.pt", {**contents, name: program}))
    assert not mark.exists()
    pickle.loads(b"\x80\x02" + exploit + b".")
    assert mark.exists()


def test_archives_that_torch_never_writes_are_refused(vectors, tmp_path):
    contents = records(vectors.folder / "model.pt")
    path = tmp_path / "model.pt"
    with pytest.raises(UsageError, match="compressed or overlap"):
        read_released_module(write(path, contents, zipfile.ZIP_DEFLATED))
    with pytest.raises(UsageError, match=r"must have one data\.pkl"):
        read_released_module(write(path, {"model/readme": b"hello"}))
    with pytest.raises(UsageError, match=r"must have one data\.pkl"):
        read_released_module(write(path, {"a/data.pkl": b"N.", "b/data.pkl": b"N."}))
    with pytest.raises(UsageError, match="must be little-endian"):
        read_released_module(write(path, {**contents, "model/byteorder": b"big"}))
    missing = {name: data for name, data in contents.items() if not name.endswith("data/3")}
    with pytest.raises(UsageError, match="storage '3' must have"):
        read_released_module(write(path, missing))


def test_overlapping_records_are_refused(tmp_path):
    """A zip bomb without compression: many names for one record."""
    path = write(tmp_path / "model.pt", {"model/data.pkl": b"N.", "model/data/0": b"\0" * 4096})
    with zipfile.ZipFile(path, "a") as archive:
        for index in range(1, 50):
            copy = zipfile.ZipInfo(f"model/data/{index}")
            template = archive.getinfo("model/data/0")
            copy.header_offset, copy.CRC = template.header_offset, template.CRC
            copy.file_size = copy.compress_size = 4096
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
        archive._didModify = True
    with pytest.raises(UsageError, match="compressed or overlap"):
        read_released_module(path)


def test_other_files_are_refused(vectors, tmp_path):
    with pytest.raises(UsageError, match=r"cannot read model file .*: No such file"):
        read_released_module(tmp_path / "none.pt")
    with pytest.raises(UsageError, match=r"cannot read model file .*: Is a directory"):
        read_released_module(tmp_path)
    legacy = tmp_path / "legacy.pt"
    torch.save({"a": torch.ones(2)}, legacy, _use_new_zipfile_serialization=False)
    with pytest.raises(UsageError, match=r"must be an archive as torch\.save writes it since"):
        read_released_module(legacy)
    plain = tmp_path / "plain.pt"
    torch.save({"a": torch.ones(2)}, plain)
    with pytest.raises(UsageError, match="must hold a whole module, got a dict"):
        read_released_module(plain)


def test_broken_bytes_never_raise_anything_else(vectors, tmp_path):
    """Bytes are changed and cut at random places; each file is read or refused in a sentence."""
    contents = records(vectors.folder / "model.pt")
    name = next(each for each in contents if each.endswith("data.pkl"))
    whole = contents[name]
    starts = [place for _, _, place in pickletools.genops(whole)]
    generator = np.random.default_rng(5)
    refused = 0
    for _ in range(150):
        program = bytearray(whole)
        spot = int(generator.choice(starts[:400]))
        program[spot] = int(generator.integers(256))
        if generator.random() < 0.2:
            program = program[: int(generator.integers(len(program)))]
        path = write(tmp_path / "model.pt", {**contents, name: bytes(program)})
        try:
            read_released_module(path)
        except UsageError:
            refused += 1
    assert refused > 100

"""Reading checkpoints: every container, and every file that must be refused."""

import argparse
import builtins
import os
import pickle
from collections import OrderedDict

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import file_sha256, load_strictly, read_checkpoint, state_sha256
from robustbench_elliptical.models.hashing import check_sha256

STATE = {"a.weight": torch.arange(6.0).view(2, 3), "a.bias": torch.tensor([0.5, -1.0])}
OTHER = {name: tensor + 1 for name, tensor in STATE.items()}


def equal(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


# --- What is read


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    "content",
    [
        STATE,
        OrderedDict(STATE),
        {"model": STATE, "epoch": 3, "args": argparse.Namespace(lr=0.1, blocks=[1])},
        {"state_dict": STATE, "optimizer": {"lr": 0.1}},
        {"model_state_dict": STATE},
        {"module." + name: tensor for name, tensor in STATE.items()},
        {"model": {"module." + name: nn.Parameter(tensor) for name, tensor in STATE.items()}},
    ],
    ids=["raw", "ordered", "deit", "state_dict", "model_state_dict", "module", "parameters"],
)
def test_torch_formats(content, zipped, tmp_path):
    torch.save(content, tmp_path / "w.pth", _use_new_zipfile_serialization=zipped)
    state = read_checkpoint(tmp_path / "w.pth")
    assert equal(state, STATE)
    assert not any(tensor.requires_grad for tensor in state.values())


def test_safetensors(tmp_path):
    save_file(STATE, tmp_path / "w.safetensors")
    assert equal(read_checkpoint(tmp_path / "w.safetensors"), STATE)


def test_averaged_weights_only_when_asked(tmp_path):
    torch.save({"model": STATE, "model_ema": OTHER}, tmp_path / "w.pth")
    assert equal(read_checkpoint(tmp_path / "w.pth"), STATE)
    assert equal(read_checkpoint(tmp_path / "w.pth", weights="model_ema"), OTHER)


def test_the_released_container(vector_checkpoint):
    model, averaged = (
        read_checkpoint(vector_checkpoint, weights=weights) for weights in ("model", "model_ema")
    )
    assert model.keys() == averaged.keys()
    assert len(model) == 56
    assert not equal(model, averaged)


def test_module_prefix_stays_unless_every_name_has_it(tmp_path):
    state = {"module.a": torch.ones(1), "b": torch.ones(1)}
    torch.save(state, tmp_path / "w.pth")
    assert equal(read_checkpoint(tmp_path / "w.pth"), state)


def test_namespace_is_allowed_for_the_one_call_only(vector_checkpoint):
    before = set(torch.serialization.get_safe_globals())
    read_checkpoint(vector_checkpoint)
    assert set(torch.serialization.get_safe_globals()) == before
    assert argparse.Namespace not in before


# --- What would run code


class System:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


class Exec(System):
    def __reduce__(self):
        return builtins.exec, (f"open({str(self.target)!r}, 'w').close()",)


def save_zip(content, path):
    torch.save(content, path)


def save_legacy(content, path):
    torch.save(content, path, _use_new_zipfile_serialization=False)


def save_pickle(content, path):
    path.write_bytes(pickle.dumps(content))


SAVERS = [save_zip, save_legacy, save_pickle]


@pytest.mark.parametrize("save", SAVERS)
@pytest.mark.parametrize(("kind", "named"), [(System, "system"), (Exec, "exec")])
def test_a_hostile_pickle_runs_nothing(kind, named, save, tmp_path):
    target = tmp_path / "touched"
    save({"epoch": kind(target)}, tmp_path / "w.pth")
    with pytest.raises(
        UsageError, match=rf"asks for [\w.]*{named} and checkpoints are read without running code"
    ):
        read_checkpoint(tmp_path / "w.pth")
    assert not target.exists()
    # The weapon is real: an ordinary unpickler would have fired it.
    pickle.loads(pickle.dumps(kind(target)))
    assert target.exists()


@pytest.mark.parametrize("save", SAVERS)
def test_a_whole_pickled_module(save, tmp_path):
    save(nn.Linear(2, 2), tmp_path / "w.pth")
    with pytest.raises(
        UsageError,
        match=r"asks for [\w.]*Linear .*save plain weights.*torch.save\(model.state_dict\(\)",
    ):
        read_checkpoint(tmp_path / "w.pth")


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_torchscript(tmp_path):
    torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)).save(tmp_path / "w.pt")
    with pytest.raises(UsageError, match="it is a TorchScript program"):
        read_checkpoint(tmp_path / "w.pt")


# --- What is no checkpoint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; fetch it again"),
        (b"\n<!DOCTYPE html><html>", "is a web page, not weights"),
        (b"<html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
        (b"hello world", "is damaged or no torch checkpoint"),
        (b"\x80\x02garbage", "is damaged or no torch checkpoint"),
    ],
)
def test_files_that_are_something_else(content, message, tmp_path):
    path = tmp_path / "w.pth"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_checkpoint(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_truncated_files(suffix, tmp_path):
    path = tmp_path / f"w{suffix}"
    save = save_file if suffix == ".safetensors" else torch.save
    save(STATE, path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UsageError, match="fetch or save it again"):
        read_checkpoint(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_checkpoint(tmp_path / "w.pth")
    with pytest.raises(UsageError, match="is a folder; name the file in it"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("content", "weights", "message"),
    [
        ([1, 2], "model", "must hold a state dict, got list"),
        (torch.ones(2), "model", "must hold a state dict, got Tensor"),
        ({}, "model", "holds no tensors"),
        ({"model": {}}, "model", "holds no tensors"),
        ({"a": torch.ones(1), "epoch": 3}, "model", "entry 'epoch' must be a tensor, got int"),
        ({"a": torch.ones(1), 3: torch.ones(1)}, "model", "entry named 3; names must be text"),
        ({"net": STATE, "epoch": 1}, "model", "under model or .*, got the entries 'net', 'epoch'"),
        (STATE, "model_ema", "has no averaged weights model_ema; load it with weights=model"),
        ({"a": torch.eye(2).to_sparse()}, "model", "tensor 'a' must be plain and dense"),
        (STATE, "ema", "weights must be one of model, model_ema, got 'ema'"),
    ],
)
def test_contents_that_do_not_fit(content, weights, message, tmp_path):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(UsageError, match=message):
        read_checkpoint(tmp_path / "w.pth", weights=weights)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(position=st.integers(0, 1200), replacement=st.binary(min_size=1, max_size=8))
def test_damage_anywhere_is_a_usage_error_or_tensors(position, replacement, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(STATE, path)
    content = bytearray(path.read_bytes())
    content[position : position + len(replacement)] = replacement
    path.write_bytes(content)
    try:
        state = read_checkpoint(path)
    except UsageError:
        return
    assert all(isinstance(tensor, torch.Tensor) for tensor in state.values())


# --- Hashes


def test_file_hash_is_sha256sum(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(tmp_path / "f") == known
    assert check_sha256(tmp_path / "f", known.upper()) == known
    with pytest.raises(UsageError, match=r"000000000000\.\.\. .*, got ba7816bf8f01\.\.\.;"):
        check_sha256(tmp_path / "f", "0" * 64)


def test_state_hash_knows_the_weights_only():
    same = dict(reversed(STATE.items()))
    assert state_sha256(same) == state_sha256(STATE)
    transposed = {**STATE, "a.weight": STATE["a.weight"].t().contiguous().t()}
    assert state_sha256(transposed) == state_sha256(STATE)
    changes = [
        OTHER,
        {**STATE, "a.bias": STATE["a.bias"].double()},
        {**STATE, "a.weight": STATE["a.weight"].view(3, 2)},
        {"b.weight": STATE["a.weight"], "a.bias": STATE["a.bias"]},
        {"a.weight": STATE["a.weight"]},
    ]
    hashes = {state_sha256(change) for change in changes}
    assert len(hashes) == len(changes)
    assert state_sha256(STATE) not in hashes
    odd = {"zero": torch.tensor(1.0), "none": torch.ones(0), "half": torch.ones(1).bfloat16()}
    assert len(state_sha256(odd)) == 64


# --- Strict loading


def network():
    return nn.Sequential(OrderedDict(a=nn.Linear(3, 2), b=nn.Linear(2, 8), c=nn.Linear(8, 8)))


def test_half_precision_loads_into_single():
    target = network()
    state = {name: tensor.half() for name, tensor in network().state_dict().items()}
    load_strictly(target, state, "w.pth")
    for name, tensor in target.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, state[name].float())


def test_mismatch_lists_the_first_few_of_each():
    target = network()
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    state = {f"x{index}": torch.ones(1) for index in range(7)}
    with pytest.raises(UsageError) as caught:
        load_strictly(target, state, "checkpoint w.pth")
    message = str(caught.value)
    assert message.startswith("checkpoint w.pth does not fit the model's 6 tensors: ")
    assert "6 missing (a.weight, a.bias, b.weight, b.bias, c.weight, ...)" in message
    assert "7 unexpected (x0, x1, x2, x3, x4, ...)" in message
    shapes = {name: torch.ones(5, 5) for name in before}
    with pytest.raises(UsageError, match=r"6 of another shape \(a.weight \[5, 5\] instead of") as e:
        load_strictly(target, shapes, "w.pth")
    assert str(e.value).count("instead of") == 3
    assert equal(target.state_dict(), before)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.tensor([1.0, float("nan")]), "tensor 'a.bias' must be finite"),
        (torch.tensor([1.0, float("inf")]), "tensor 'a.bias' must be finite"),
        (torch.tensor([1.0, 1e300]).double() * 1e30, "tensor 'a.bias' must be finite"),
        (torch.tensor([1, 2], dtype=torch.int8), "tensor 'a.bias' must be float32, got int8"),
    ],
)
def test_weights_that_cannot_be_right(value, message):
    target = network()
    state = {**target.state_dict(), "a.bias": value}
    with pytest.raises(UsageError, match=message):
        load_strictly(target, state, "w.pth")

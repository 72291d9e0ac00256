"""Programs for a pickle machine that want to be run, or to exhaust the reader."""

import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language import (
    read_released_module,
)

STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
"""Start of a persistent id and of the tuple that will hold it: the count and the rest follow."""


def save(path, program, storages=None):
    contents = {"model/data.pkl": program}
    contents |= {f"model/data/{key}": data for key, data in (storages or {}).items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


def text(value):
    return b"X" + struct.pack("<i", len(value)) + value.encode()


def module(parameters=b"}", buffers=b"}", modules=b"}", extra=b""):
    """A program that describes a module with these programs' results as its tensors."""
    entries = text("_parameters") + parameters + text("_buffers") + buffers
    entries += text("_modules") + modules + extra
    return b"cmem_transformer\nMemTransformerLM\n)\x81}(" + entries + b"ub"


def tensor(count=4, size=(4,), stride=(1,), offset=0):
    """A program for a float tensor on storage 0."""

    def numbers(values):
        return b"(" + b"".join(b"L%dL\n" % value for value in values) + b"t"

    place = b"L%dL\n" % count + b"tQ" + b"L%dL\n" % offset + numbers(size) + numbers(stride)
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n"
        + STORAGE
        + place
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def parameter(**options):
    return b"}" + text("weight") + tensor(**options) + b"s"


class Calls:
    """Pickles to a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


OPEN = "open({!r}, 'w').close()"
EXPLOITS = {
    "system": (lambda mark: Calls(os.system, f"touch {mark}"), r"posix\.system"),
    "eval": (
        lambda mark: Calls(eval, f"open({mark!r}, 'w').close()"),
        r"(__builtin__|builtins)\.eval",
    ),
    "exec": (
        lambda mark: Calls(exec, f"open({mark!r}, 'w').close()"),
        r"(__builtin__|builtins)\.exec",
    ),
    "open": (lambda mark: Calls(open, mark, "w"), r"i?o\.open"),
    "import": (lambda mark: Calls(__import__, "os"), r"(__builtin__|builtins)\.__import__"),
    "getattr": (
        lambda mark: Calls(getattr, Calls(__import__, "os"), "system"),
        r"(__builtin__|builtins)\.getattr",
    ),
    "numpy": (lambda mark: np.ones(2), r"numpy\.[\w.]+"),
    "torch": (lambda mark: Calls(torch.load, mark), r"torch\.serialization\.load"),
    "mkdir": (lambda mark: Calls(os.mkdir, mark), r"posix\.mkdir"),
}
CREATES_THE_FILE = {"system", "eval", "exec", "open", "mkdir"}


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", EXPLOITS)
def test_exploits_are_refused_by_name_and_do_not_run(kind, protocol, tmp_path):
    mark = tmp_path / "mark"
    make, named = EXPLOITS[kind]
    program = pickle.dumps(make(str(mark)), protocol=min(protocol, 5))
    path = save(tmp_path / "model.pt", program)
    with pytest.raises(UsageError, match=f"is refused because it asks for {named}, and it is read"):
        read_released_module(path)
    assert not mark.exists()
    if kind in CREATES_THE_FILE:  # the exploit is a real one
        opened = pickle.loads(program)
        assert mark.exists()
        if kind == "open":
            opened.close()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (b"cmem_transformer\nMemTransformerLM\n)R.", r"calls mem_transformer\.MemTransformerLM"),
        (b"cutils\nos.system\n(X\x02\x00\x00\x00lstR.", r"calls utils\.os\.system"),
        (b"ctorch.nn.modules.module\nModule\n)R.", r"calls torch\.nn\.modules\.module\.Module"),
        (b"ctorch.nn.functional\nrelu\n.", r"asks for torch\.nn\.functional\.relu"),
        (b"ctorch\nload\n.", r"asks for torch\.load"),
        (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93.", r"asks for os\.system"),
        (b"}X\x02\x00\x00\x00os\x93.", "names a class by a dict and a str"),
        (b"cutils\n" + b"a" * 300 + b"\n.", "asks for a name of 306 characters"),
        (b"})Ns.", "has a tuple as a key"),
        (b"(NNd.", "has a NoneType as a key"),
        (b"\x8f(]\x90.", "has a list as a key"),
        (b"(X\x02\x00\x00\x00lsios\nsystem\n.", "uses the pickle instruction INST"),
        (b"(cmem_transformer\nA\no.", "uses the pickle instruction OBJ"),
        (b"\x82\x01.", "uses the pickle instruction EXT1"),
        (b"cmem_transformer\nA\n)}\x92.", "uses the pickle instruction NEWOBJ_EX"),
        (b"P0\n.", "uses the pickle instruction PERSID"),
        (b"})R.", "calls a dict"),
        (b"})\x81.", "calls a dict"),
        (b"ctorch\nFloatStorage\n}b.", r"sets the state of a torch\.FloatStorage from a dict"),
        (b"ccollections\nOrderedDict\n}b.", r"sets the state of a collections\.OrderedDict"),
        (b"cmem_transformer\nA\n)\x81N}\x86b.", "sets the state of a StandIn from a tuple"),
        (b"cmem_transformer\nA\n)\x81X\x01\x00\x00\x00aNs.", "fills a StandIn as a dict"),
        (b"cmem_transformer\nA\n)\x81Na.", "fills a StandIn as a list"),
        (b"cmem_transformer\nA\n(Ne.", "fills a mem_transformer.A as a list"),
    ],
)
def test_tricks_are_refused(program, problem, tmp_path):
    with pytest.raises(UsageError, match=f"is refused because it {problem}"):
        read_released_module(save(tmp_path / "model.pt", b"\x80\x04" + program))


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b"\x80\x02",
        b"}",
        b".",
        b"h\x05.",
        b"t.",
        b"\x80\x02(.",
        b"hello, this is no pickle",
        b"(K\x01NK\x02d.",
        b"cbuiltins\nset\n(](K\x01etR.",
        module(parameter(size=(1,) * 17, stride=(1,) * 17)),
        b"\x8e" + struct.pack("<Q", 2**60) + b"a.",
        b"\x8d" + struct.pack("<Q", 2**60) + b"a.",
        b"\x8b\xff\xff\xff\x7fa.",
        b"I" + b"9" * 10_000 + b"\n.",
        b"NQ.",
        b"(X\x06\x00\x00\x00modulecmem_transformer\nA\nX\x01\x00\x00\x00fX\x01\x00\x00\x00stQ.",
        b"ccollections\nOrderedDict\n(K\x01tR.",
        b"cbuiltins\nset\n(](]]]etR.",
        b"ctorch._utils\n_rebuild_parameter\n(}\x89}tR.",
        module(parameter(count=5)),
        module(parameter(count=2**60)),
        module(parameter(count=-4)),
        module(parameter(size=(5,))),
        module(parameter(size=(10**9,), stride=(0,))),
        module(parameter(size=(2**40, 2**40))),
        module(parameter(size=(2,), stride=(4,))),
        module(parameter(size=(2,), stride=(-1,), offset=1)),
        module(parameter(size=(1,), offset=4)),
        module(parameter(size=(1,), offset=-1)),
        module(parameter(size=(2, 2), stride=(2,))),
    ],
)
def test_damaged_programs_are_said_to_be(program, tmp_path):
    path = save(tmp_path / "model.pt", program, {"0": b"\0" * 16})
    with pytest.raises(UsageError, match="is damaged or no module saved by torch"):
        read_released_module(path)


def test_views_of_a_storage_are_read_where_they_fit(tmp_path):
    storage = np.arange(4, dtype=np.float32).tobytes()
    program = module(parameter(size=(2, 2), stride=(1, 2)), b"}" + text("mask") + b"Ns") + b"."
    state = read_released_module(save(tmp_path / "model.pt", program, {"0": storage}))
    assert list(state) == ["weight"]
    assert state["weight"].tolist() == [[0, 2], [1, 3]]
    program = module(parameter(count=0, size=(0, 3), stride=(3, 1))) + b"."
    state = read_released_module(save(tmp_path / "model.pt", program, {"0": b""}))
    assert state["weight"].shape == (0, 3)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (b"}.", "must hold a whole module, got a dict"),
        (b"cmem_transformer\nA\n.", r"got the name mem_transformer\.A"),
        (b"cmem_transformer\nA\n)\x81.", r"_parameters of a mem_transformer\.A must be named"),
        (module(b"]") + b".", "_parameters of a mem_transformer.MemTransformerLM must be named"),
        (module(b"}K\x01Ns") + b".", "must be named entries"),
        (module(b"}" + text("w" * 201) + b"Ns") + b".", "must be named entries"),
        (module(b"}" + text("w") + b"K\x01s") + b".", "w must be a tensor, got int"),
        (module(modules=b"}" + text("a") + b"K\x01s") + b".", "a must be a module, got int"),
        (module() + b".", "holds no tensors"),
    ],
)
def test_what_is_no_module_is_refused(program, problem, tmp_path):
    with pytest.raises(UsageError, match=problem):
        read_released_module(save(tmp_path / "model.pt", program))


def test_modules_within_themselves_end(tmp_path):
    cycle = b"cmem_transformer\nA\n)\x81q\x00}(" + text("_parameters") + b"}" + text("_buffers")
    cycle += b"}" + text("_modules") + b"}" + text("me") + b"h\x00s" + b"ub."
    with pytest.raises(UsageError, match="nested more than 64 deep"):
        read_released_module(save(tmp_path / "model.pt", cycle))
    doubling = module()
    for _ in range(40):
        twice = b"}" + text("a") + b"h\x01s" + text("b") + b"h\x01s"
        doubling += b"q\x010" + module(modules=twice)
    with pytest.raises(UsageError, match="number more than 10000"):
        read_released_module(save(tmp_path / "model.pt", doubling + b"."))


def test_shared_tuples_are_never_expanded(tmp_path):
    """Sixty tuples, each twice in the next: hashing, comparing or printing one takes for ever."""
    tower = b")" + b"q\x010h\x01h\x01\x86" * 60
    number = b"L1L\n"
    rebuilt = b"ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE + b"L4L\ntQ"
    for program in (
        b"}" + tower + b"Ns.",
        tower + b"X\x01\x00\x00\x00a\x93.",
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000N" + tower + b"tQ.",
        rebuilt + tower + number + b"\x85" + tower + b"\x85\x89)tR.",
        rebuilt + number + tower + tower + b"\x89)tR.",
        b"cbuiltins\nset\n](" + tower + b"e\x85R.",
        module(tower) + b".",
        module(b"}" + text("w") + tower + b"s") + b".",
        module(b"}" + text("w") + b"Ns", extra=text("_non_persistent_buffers_set") + tower) + b".",
        tower + b".",
    ):
        path = save(tmp_path / "model.pt", b"\x80\x02" + program, {"0": b"\0" * 16})
        with pytest.raises(UsageError):
            read_released_module(path)


def test_deep_containers_do_not_overflow_the_stack(tmp_path):
    with pytest.raises(UsageError, match="got a list"):
        read_released_module(save(tmp_path / "model.pt", b"]" * 100_000 + b"a" * 99_999 + b"."))

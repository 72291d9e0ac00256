"""Read the tensors of a checkpoint without running anything that it contains.

A torch checkpoint is a pickle, and unpickling may run any code. Every file is therefore read by
torch's weights-only reader, which builds tensors and plain containers and nothing else; the one
further class allowed is `argparse.Namespace`, which DeiT's training script stores beside its
weights. This module knows nothing about networks: see `robustbench_elliptical.models.weights`.
"""

import argparse
import pickletools
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError

__all__ = ["WeightsKind", "read_checkpoint"]

WeightsKind = Literal["model", "model_ema"]

_ENTRIES: dict[WeightsKind, tuple[str, ...]] = {
    "model": ("model", "state_dict", "model_state_dict"),
    "model_ema": ("model_ema", "state_dict_ema"),
}
_NO_CHECKPOINTS = {
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"<?xml": "a web page",
    b"version https://git-lfs": "a Git LFS pointer",
}
_HARMLESS_MODULES = (["torch._utils"], ["collections"])
_HOW_TO_SAVE = "torch.save(model.state_dict(), 'weights.pth')"


def read_checkpoint(path: str | Path, *, weights: WeightsKind = "model") -> dict[str, Tensor]:
    """Return the tensors of a checkpoint by name, on the CPU, in the dtypes they are stored in.

    A ``.safetensors`` file, a state dict saved by torch, or a container with a state dict under
    ``model``, ``state_dict`` or ``model_state_dict``. If every name starts with ``module.``, as
    `torch.nn.DataParallel` leaves it, the prefix goes.

    Parameters
    ----------
    path
        The file.
    weights
        ``"model"``, or ``"model_ema"`` for the averaged weights of a container that has them.

    Raises
    ------
    UsageError
        If the file is missing, damaged, holds anything but tensors, or would run code.
    """
    path = Path(path)
    if weights not in _ENTRIES:
        raise UsageError(f"weights must be one of {', '.join(_ENTRIES)}, got {weights!r}")
    _check_file(path)
    content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    return _without_module_prefix(_only_tensors(_select(content, weights, path), path))


def _check_file(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"checkpoint {path} does not exist")
    if path.is_dir():
        raise UsageError(f"checkpoint {path} is a folder; name the file in it")
    try:
        with path.open("rb") as file:
            start = file.read(64).lstrip().lower()
    except OSError as error:
        raise UsageError(f"cannot read checkpoint {path}: {error.strerror}") from None
    if not path.stat().st_size:
        raise UsageError(f"checkpoint {path} is empty; fetch it again")
    for signature, kind in _NO_CHECKPOINTS.items():
        if start.startswith(signature):
            raise UsageError(f"checkpoint {path} is {kind}, not weights; fetch the file itself")


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        state: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UsageError(
            f"checkpoint {path} is no readable safetensors file ({_first_line(error)}); "
            "fetch or save it again"
        ) from None
    return state


def _read_torch(path: Path) -> Any:
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals([argparse.Namespace]):
            warnings.simplefilter("ignore")  # about pickle protocols; what matters is raised
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle may raise anything
        problem = str(error)
        refused = re.search(
            r"(?:GLOBAL|function) <?(?:built-in function |class )?'?([\w.]+)", problem
        )
        asked = refused[1] if refused is not None else _first_global(path)
        if "TorchScript" in problem:
            what = "it is a TorchScript program"
        elif asked is not None:
            what = f"it asks for {asked}"
        else:
            raise UsageError(
                f"checkpoint {path} is damaged or no torch checkpoint "
                f"({type(error).__name__}: {_first_line(error)}); fetch or save it again"
            ) from None
    raise UsageError(
        f"checkpoint {path} is refused because {what} and checkpoints are read without running "
        f"code; save plain weights where you trust it, with {_HOW_TO_SAVE}, and load those"
    )


def _first_global(path: Path) -> str | None:
    """Return a class or function that a plain pickle names, for a message; nothing is executed."""
    words: list[str] = []
    try:
        with path.open("rb") as file:
            for opcode, argument, _ in pickletools.genops(file):
                if opcode.name == "STACK_GLOBAL" and words[-2:-1] not in _HARMLESS_MODULES:
                    return ".".join(words[-2:])
                if isinstance(argument, str):
                    words.append(argument)
    except ValueError:  # not a pickle from start to end
        return None
    return None


def _first_line(error: Exception) -> str:
    """Return the start of an error message, short enough for one sentence."""
    lines = str(error).strip().splitlines() or ["no details"]
    return lines[0].rstrip(".")[:120]


def _select(content: Any, weights: WeightsKind, path: Path) -> Mapping[Any, Any]:
    """Return the state dict that `weights` names."""
    if not isinstance(content, Mapping):
        raise UsageError(
            f"checkpoint {path} must hold a state dict, got {type(content).__name__}; "
            f"save it with {_HOW_TO_SAVE}"
        )
    inner = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    for entry in _ENTRIES[weights]:
        if entry in inner:
            return inner[entry]
    if weights == "model_ema":
        raise UsageError(
            f"checkpoint {path} has no averaged weights model_ema; load it with weights=model"
        )
    if inner:
        found = ", ".join(repr(key) for key in list(content)[:8])
        raise UsageError(
            f"checkpoint {path} must hold its weights under {' or '.join(_ENTRIES[weights])}, "
            f"got the entries {found}; save plain weights with {_HOW_TO_SAVE}"
        )
    return content


def _only_tensors(state: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    if not state:
        raise UsageError(f"checkpoint {path} holds no tensors")
    tensors: dict[str, Tensor] = {}
    for name, value in state.items():
        if not isinstance(name, str):
            raise UsageError(f"checkpoint {path} has an entry named {name!r}; names must be text")
        if not isinstance(value, Tensor):
            raise UsageError(
                f"checkpoint {path}: entry {name!r} must be a tensor, got {type(value).__name__}"
            )
        if value.layout != torch.strided or value.is_quantized or value.is_meta:
            raise UsageError(f"checkpoint {path}: tensor {name!r} must be plain and dense")
        tensors[name] = value.detach()
    return tensors


def _without_module_prefix(state: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = "module."
    if all(name.startswith(prefix) and name != prefix for name in state):
        return {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    return state

"""Identify checkpoint files and the weights in them by SHA-256."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError

__all__ = ["check_sha256", "file_sha256", "state_sha256"]


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: str | Path, expected: str, kind: str = "checkpoint") -> str:
    """Return the SHA-256 of a file that a card names.

    Parameters
    ----------
    path
        The file.
    expected
        What the card states.
    kind
        What the file is, which is also the argument of `load_model` that takes another one.

    Raises
    ------
    UsageError
        If they differ.
    """
    actual = file_sha256(path)
    if actual != expected.lower():
        raise UsageError(
            f"{kind} {path} must have the SHA-256 {expected[:12]}... that its card states, "
            f"got {actual[:12]}...; fetch the file again, or pass it as {kind}=PATH to use it "
            "anyway"
        )
    return actual


def state_sha256(state: Mapping[str, Tensor]) -> str:
    """Return a hash of the weights themselves: sorted names, dtypes, shapes and bytes.

    It is the same for one set of weights in any file format, container, order or device.
    """
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        header = json.dumps([name, str(tensor.dtype), list(tensor.shape)])
        digest.update(header.encode() + b"\n")
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()

"""Take the weights out of the authors' ``model.pt`` without running its code.

That file is a whole pickled module: unpickling it imports the classes it names and runs what they
say. It is read as inert data instead (`read_inert`), and the state dict is taken from the tree of
stand-ins by the rules of `torch.nn.Module.state_dict`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.language.architecture import (
    DecoderArchitecture,
    build_language_model,
)
from robustbench_elliptical.models.language.inert_pickle import (
    Constructors,
    DamagedPickleError,
    Name,
    StandIn,
    read_inert,
)
from robustbench_elliptical.models.language.torch_archive import TorchArchive, rebuild_tensor
from robustbench_elliptical.models.language.weights import load_language_weights

__all__ = ["convert", "read_released_module"]

_MODULES = ("torch.nn.modules.", "mem_transformer.", "utils.")
"""Where the released model's classes live; stand-ins take their place."""
_DEEPEST, _MOST_MODULES, _LONGEST_NAME = 64, 10_000, 200


def convert(path: str | Path, architecture: DecoderArchitecture) -> dict[str, Tensor]:
    """Return the state dict of a released ``model.pt``, checked against an architecture.

    Parameters
    ----------
    path
        The file.
    architecture
        The sizes that its card states; the attention has no tensors, so any would fit.

    Raises
    ------
    UsageError
        If the file is refused or damaged, or its tensors aren't those of the architecture.
    """
    state = read_released_module(path)
    model = build_language_model(architecture, AttentionChoice(mechanism="softmax"))
    load_language_weights(model, state, f"model file {path}")
    return state


def read_released_module(path: str | Path) -> dict[str, Tensor]:
    """Return the state dict of a whole module saved by `torch.save`; nothing of it is run.

    Raises
    ------
    UsageError
        If the file is missing or damaged, no such module, or asks for anything beyond tensors,
        torch's layers and the classes of the released code.
    """
    path = Path(path)
    subject = f"model file {path}"
    with TorchArchive(path, subject) as archive:
        constructors: Constructors = {
            "collections.OrderedDict": _empty_dict,
            "__builtin__.set": _set_of_names,
            "builtins.set": _set_of_names,
            "torch._utils._rebuild_tensor_v2": rebuild_tensor,
            "torch._utils._rebuild_parameter": _rebuild_parameter,
        }
        try:
            root = read_inert(
                archive.pickle(),
                subject=subject,
                allowed=lambda name: name.startswith(_MODULES) or archive.is_storage(name),
                constructors=constructors,
                persistent=archive.storage,
            )
        except DamagedPickleError as error:
            raise UsageError(
                f"{subject} is damaged or no module saved by torch ({error}); fetch it again"
            ) from None
    if not isinstance(root, StandIn):
        what = f"the name {root.text}" if isinstance(root, Name) else f"a {type(root).__name__}"
        raise UsageError(
            f"{subject} must hold a whole module, got {what}; load plain weights as a checkpoint"
        )
    return _state_dict(root, subject)


def _empty_dict() -> dict[str, Any]:
    return {}


def _set_of_names(items: Any) -> set[str]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise TypeError("a set must hold names")
    return set(items)


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Tensor:
    del requires_grad, hooks
    if not isinstance(data, Tensor):
        raise TypeError(f"a parameter must be a tensor, got {type(data).__name__}")
    return data


def _state_dict(root: StandIn, subject: str) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for prefix, module in _walk(root, subject):
        transient = module.state.get("_non_persistent_buffers_set")
        transient = transient if isinstance(transient, set) else set()
        for kind in ("_parameters", "_buffers"):
            for name, tensor in _entries(module, kind, subject):
                if tensor is None or (kind == "_buffers" and name in transient):
                    continue
                if not isinstance(tensor, Tensor):
                    raise UsageError(
                        f"{subject}: {prefix}{name} must be a tensor, got {type(tensor).__name__}"
                    )
                state[f"{prefix}{name}"] = tensor
    if not state:
        raise UsageError(f"{subject} holds no tensors")
    return state


def _walk(root: StandIn, subject: str) -> Iterator[tuple[str, StandIn]]:
    """Yield every module with the prefix of its tensors' names, parents first."""
    waiting, count = [("", root, 0)], 0
    while waiting:
        prefix, module, depth = waiting.pop()
        count += 1
        if depth > _DEEPEST or count > _MOST_MODULES:
            raise UsageError(
                f"{subject} is refused because its modules are nested more than {_DEEPEST} deep "
                f"or number more than {_MOST_MODULES}"
            )
        yield prefix, module
        children = []
        for name, child in _entries(module, "_modules", subject):
            if isinstance(child, StandIn):
                children.append((f"{prefix}{name}.", child, depth + 1))
            elif child is not None:
                raise UsageError(
                    f"{subject}: {prefix}{name} must be a module, got {type(child).__name__}"
                )
        waiting.extend(reversed(children))


def _entries(module: StandIn, kind: str, subject: str) -> Iterator[tuple[str, Any]]:
    entries = module.state.get(kind)
    if not isinstance(entries, dict) or not all(
        isinstance(name, str) and len(name) <= _LONGEST_NAME for name in entries
    ):
        raise UsageError(f"{subject} is damaged: {kind} of a {module.name} must be named entries")
    return iter(entries.items())

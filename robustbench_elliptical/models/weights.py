"""Put a checkpoint's tensors into a network: all of them, or none."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError

__all__ = ["load_strictly"]


def load_strictly(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Load `state` into `network`, converting floating-point tensors to the network's dtypes.

    Parameters
    ----------
    network
        Changed only if everything fits.
    state
        Tensors by name.
    source
        Where they come from, for messages ("checkpoint weights.pth").

    Raises
    ------
    UsageError
        If a tensor is missing, unexpected, of another shape or kind, or not finite.
    """
    own = network.state_dict()
    _check_names_and_shapes(own, state, source)
    converted = {}
    for name, target in own.items():
        tensor = state[name]
        if tensor.is_floating_point() != target.is_floating_point():
            raise UsageError(
                f"{source}: tensor {name!r} must be {_short(target.dtype)}, "
                f"got {_short(tensor.dtype)}"
            )
        converted[name] = tensor.to(target.dtype)
        if not bool(torch.isfinite(converted[name]).all()):
            raise UsageError(
                f"{source}: tensor {name!r} must be finite, but holds NaN or infinity; "
                "the training that wrote it probably diverged"
            )
    network.load_state_dict(converted, strict=True)


def _check_names_and_shapes(
    own: Mapping[str, Tensor], state: Mapping[str, Tensor], source: str
) -> None:
    missing = [name for name in own if name not in state]
    unexpected = [name for name in state if name not in own]
    reshaped = [name for name in own if name in state and own[name].shape != state[name].shape]
    problems = []
    if missing:
        problems.append(f"{len(missing)} missing ({_some(missing, 5)})")
    if unexpected:
        problems.append(f"{len(unexpected)} unexpected ({_some(unexpected, 5)})")
    if reshaped:
        shapes = [
            f"{name} {list(state[name].shape)} instead of {list(own[name].shape)}"
            for name in reshaped
        ]
        problems.append(f"{len(reshaped)} of another shape ({_some(shapes, 3)})")
    if problems:
        raise UsageError(
            f"{source} does not fit the model's {len(own)} tensors: {'; '.join(problems)}; "
            "give the checkpoint and the card of one and the same architecture"
        )


def _some(items: Sequence[str], count: int) -> str:
    return ", ".join(items[:count]) + (", ..." if len(items) > count else "")


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

"""The floor of an attack: the passes it makes, recorded once and replayed without the attack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["Pass", "record", "replay", "require"]


@dataclass
class Pass:
    """One forward, and how often its graph was gone back through."""

    rows: int
    backwards: int = 0


def record(model: nn.Module, attack: Callable[[Callable[[Tensor], Tensor]], object]) -> list[Pass]:
    """Run an attack on a function that notes every pass; return them in order."""
    passes: list[Pass] = []

    def logits(images: Tensor) -> Tensor:
        made = Pass(len(images))
        passes.append(made)
        answer: Tensor = model(images)
        if answer.requires_grad:
            answer.register_hook(lambda _: _count(made))
        return answer

    attack(logits)
    return passes


def _count(made: Pass) -> None:
    made.backwards += 1


def require(passes: Sequence[Pass], *, forwards: int, backwards: int) -> None:
    """Stop where the rows aren't the documented ones: an image fell early, so the floor is off."""
    forward_rows = sum(each.rows for each in passes)
    backward_rows = sum(each.rows * each.backwards for each in passes)
    if (forward_rows, backward_rows) != (forwards, backwards):
        raise AssertionError(
            f"expected {forwards} forward and {backwards} backward rows, "
            f"counted {forward_rows} and {backward_rows}"
        )


def replay(model: nn.Module, images: Tensor, passes: Sequence[Pass]) -> Callable[[], None]:
    """Return a function that makes the same passes of the bare model on the same images.

    An attack with more rows than images gets the images repeated.
    """
    inputs = {
        each.rows: images.repeat(-(-each.rows // len(images)), 1, 1, 1)[: each.rows]
        for each in passes
    }

    def run() -> None:
        for each in passes:
            if each.backwards:
                points = inputs[each.rows].detach().requires_grad_()
                torch.autograd.grad(model(points).sum(), points)
            else:
                with torch.no_grad():
                    model(inputs[each.rows])

    return run

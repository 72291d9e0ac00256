"""PGD and SPSA against torchattacks: same model, images and settings."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

import torch
from torch import Tensor

from benchmarks.rows import Row, Size, Skipped
from benchmarks.subjects import accuracy, correct_images, shipped_model
from benchmarks.timing import compare
from robustbench_elliptical.attacks import pgd, spsa

__all__ = ["torchattacks_pgd", "torchattacks_spsa"]

MODEL = "deit-micro-softmax"
PGD_EPSILON = 7 / 255
SPSA_EPSILONS = (8 / 255, 12 / 255)
PGD_TARGET = 1.0
SPSA_TARGET = 1 / 1.5
DELTA = 0.01
LEARNING_RATE = 0.01


def torchattacks_pgd(size: Size) -> list[Row]:
    """Compare PGD where about half of the images are fooled before the last step."""
    library = _torchattacks()
    model = shipped_model(MODEL)
    images, labels, ids = correct_images(model, size.peer_images)
    step_size = 2.5 * PGD_EPSILON / size.steps
    ours = partial(
        pgd,
        model,
        images,
        labels,
        epsilon=PGD_EPSILON,
        steps=size.steps,
        step_size=step_size,
        sample_ids=ids,
    )
    peer = library.PGD(model, eps=PGD_EPSILON, alpha=step_size, steps=size.steps)
    mine, theirs = _Last(ours), _Last(partial(peer, images, labels))
    ratio = compare(mine, theirs, size.budget)
    scores = _scores(model, labels, mine.result, theirs.result)
    measured = f"PGD-{size.steps} at {PGD_EPSILON * 255:.0f}/255 on {MODEL}; {scores}"
    return [Row("torchattacks-pgd", measured, "torchattacks PGD", ratio, PGD_TARGET, len(labels))]


def torchattacks_spsa(size: Size) -> list[Row]:
    """Compare SPSA at two epsilons, which differ in how many images are fooled early."""
    library = _torchattacks()
    return [_spsa_row(library, size, epsilon) for epsilon in SPSA_EPSILONS]


def _spsa_row(library: ModuleType, size: Size, epsilon: float) -> Row:
    """Compare SPSA; torchattacks counts a forward's rows for each image, the toolkit in all."""
    model = shipped_model(MODEL)
    images, labels, ids = correct_images(model, size.peer_images // 2)
    rows = 8 * len(labels)
    ours = partial(
        spsa,
        model,
        images,
        labels,
        epsilon=epsilon,
        steps=size.steps,
        samples=size.samples,
        delta=DELTA,
        learning_rate=LEARNING_RATE,
        max_rows=rows,
        sample_ids=ids,
    )
    peer = library.SPSA(
        model,
        eps=epsilon,
        delta=DELTA,
        lr=LEARNING_RATE,
        nb_iter=size.steps,
        nb_sample=size.samples,
        max_batch_size=rows // len(labels),
    )
    mine, theirs = _Last(ours), _Last(partial(peer, images, labels))
    ratio = compare(mine, theirs, size.budget)
    scores = _scores(model, labels, mine.result, theirs.result)
    measured = (
        f"SPSA-{size.steps}, {size.samples} pairs, {rows} rows a forward, "
        f"at {epsilon * 255:.0f}/255 on {MODEL}; {scores}"
    )
    target = SPSA_TARGET
    return Row("torchattacks-spsa", measured, "torchattacks SPSA", ratio, target, len(labels))


class _Last:
    """Keeps what an attack returned last, so that it need not run once more to be judged."""

    result: Tensor

    def __init__(self, attack: Callable[[], Tensor]) -> None:
        self._attack = attack

    def __call__(self) -> None:
        self.result = self._attack()


def _scores(model: torch.nn.Module, labels: Tensor, ours: Tensor, theirs: Tensor) -> str:
    return (
        f"{accuracy(model, ours, labels)} stay right, "
        f"torchattacks {accuracy(model, theirs, labels)}"
    )


def _torchattacks() -> ModuleType:
    try:
        import torchattacks
    except ImportError:
        raise Skipped(
            "it needs torchattacks: pip install 'robustbench-elliptical[torchattacks]'."
        ) from None
    torch.manual_seed(0)  # what torchattacks draws from
    return torchattacks

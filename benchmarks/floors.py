"""The toolkit's attacks against the bare passes that they need."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from benchmarks.passes import record, replay, require
from benchmarks.rows import Row, Size
from benchmarks.subjects import Subject, large_subject, small_subject
from benchmarks.timing import compare
from robustbench_elliptical.attacks import fgsm, pgd, spsa

__all__ = ["fgsm_floor", "pgd_floor", "spsa_floor"]

GRADIENT_TARGET = 1.05
SPSA_TARGET = 1.10


def fgsm_floor(size: Size) -> list[Row]:
    """Compare FGSM with one forward and one backward."""
    return [
        _row("fgsm", "FGSM", fgsm, subject, size, passes=(1, 1), target=GRADIENT_TARGET)
        for subject in (small_subject(size), large_subject(size))
    ]


def pgd_floor(size: Size) -> list[Row]:
    """Compare PGD with a forward and a backward for each step, and a forward for the last point."""
    name = f"PGD-{size.steps}"
    attack = partial(pgd, steps=size.steps)
    passes = (size.steps + 1, size.steps)
    return [
        _row("pgd", name, attack, subject, size, passes=passes, target=GRADIENT_TARGET)
        for subject in (small_subject(size), large_subject(size))
    ]


def spsa_floor(size: Size) -> list[Row]:
    """Compare SPSA with as many forward rows, in forwards of the same sizes."""
    name = f"SPSA-{size.steps}, {size.samples} pairs"
    attack = partial(spsa, steps=size.steps, samples=size.samples)
    passes = (size.steps * (2 * size.samples + 1) + 1, 0)
    subject = small_subject(size)
    return [_row("spsa", name, attack, subject, size, passes=passes, target=SPSA_TARGET)]


def _row(
    benchmark: str,
    name: str,
    attack: Callable[..., Tensor],
    subject: Subject,
    size: Size,
    *,
    passes: tuple[int, int],
    target: float,
) -> Row:
    forwards, backwards = passes
    count = len(subject.images)

    def run(model: Callable[[Tensor], Tensor]) -> Tensor:
        return attack(model, subject.images, subject.labels, epsilon=subject.epsilon)

    made = record(subject.model, run)
    require(made, forwards=forwards * count, backwards=backwards * count)
    floor = replay(subject.model, subject.images, made)
    ratio = compare(partial(run, subject.model), floor, size.budget)
    against = f"passes an image: {forwards} forward, {backwards} backward"
    return Row(benchmark, f"{name} on {subject.name}", against, ratio, target, count)

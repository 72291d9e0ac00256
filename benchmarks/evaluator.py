"""What measuring costs beside the attack: clean pass, verification, counting and records."""

from functools import partial

from benchmarks.rows import Row, Size
from benchmarks.subjects import SEED, correct_images, shipped_model
from benchmarks.timing import compare
from robustbench_elliptical.attacks import AttackChoice, pgd
from robustbench_elliptical.evaluation.images.engine import PlannedAttack, evaluate_batch
from robustbench_elliptical.evaluation.images.records import SampleTable

__all__ = ["evaluator_overhead"]

EPSILON = 6 / 255


def evaluator_overhead(size: Size) -> list[Row]:
    """Compare a batch of an evaluation with PGD to the attack alone."""
    name = "deit-micro-elliptical"
    model = shipped_model(name)
    batch = correct_images(model, size.peer_images)
    plan = [PlannedAttack(AttackChoice.of("pgd", {"steps": size.steps}), (EPSILON,))]

    def evaluate() -> None:
        evaluate_batch(model, batch, plan, SampleTable(), seed=SEED, on_unit=lambda _: None)

    alone = partial(
        pgd,
        model,
        batch.images,
        batch.labels,
        epsilon=EPSILON,
        steps=size.steps,
        seed=SEED,
        sample_ids=batch.sample_ids,
    )
    ratio = compare(evaluate, alone, size.budget)
    measured = f"evaluation with PGD-{size.steps} at 6/255 on {name}"
    return [Row("evaluator", measured, "the attack alone", ratio, None, size.peer_images)]

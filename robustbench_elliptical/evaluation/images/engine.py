"""Attack one batch of samples and judge every one of them.

A sample that is classified wrong is skipped; one that was fooled at a smaller epsilon stays fooled
at a larger one with that same point, so the curve over epsilon falls by construction. No state is
kept between batches.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from robustbench_elliptical.attacks import AttackChoice
from robustbench_elliptical.core.randomness import keyed_generator, sample_key
from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.evaluation.images.counter import CountingOracle, RowsOracle
from robustbench_elliptical.evaluation.images.internals import Witness
from robustbench_elliptical.evaluation.images.plan import PlannedAttack
from robustbench_elliptical.evaluation.images.records import Block, SampleTable, Unit
from robustbench_elliptical.evaluation.images.verification import predict, verify
from robustbench_elliptical.evaluation.modes import frozen
from robustbench_elliptical.evaluation.settings import CLEAN
from robustbench_elliptical.models import ImageClassifier

__all__ = ["evaluate_batch"]

OnUnit = Callable[[Unit], None]

_NOT_FINITE = "the logits are not finite"


class _Judged(NamedTuple):
    """What is known about each sample of a batch so far; updated in place as epsilon grows."""

    outcomes: npt.NDArray[np.str_]
    predictions: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float64]
    reasons: npt.NDArray[np.object_]

    def copy(self) -> "_Judged":
        """Return a copy whose arrays can be updated."""
        return _Judged(
            self.outcomes.copy(),
            self.predictions.copy(),
            self.distances.copy(),
            self.reasons.copy(),
        )


def evaluate_batch(
    model: ImageClassifier,
    batch: ImageBatch,
    attacks: Sequence[PlannedAttack],
    table: SampleTable,
    *,
    seed: int,
    on_unit: OnUnit,
    witness: Witness | None = None,
) -> None:
    """Evaluate a batch: clean first, then every attack at every epsilon.

    Parameters
    ----------
    model
        Its modes and requires_grad are as before afterwards, also after an exception.
    batch
        On the model's device.
    attacks
        What to run.
    table
        Receives the records; a unit's block is added whole or not at all.
    seed
        Seed of every attack.
    on_unit
        Called after every unit.
    witness
        Looks at the points of every unit.
    """
    looking = witness if witness is not None and witness.wants(batch) else None
    with frozen(model):
        clean = _clean(model, batch, table, on_unit, looking)
        for attack in attacks:
            _attack(model, batch, clean, attack, table, seed, on_unit, looking)


def _clean(
    model: ImageClassifier,
    batch: ImageBatch,
    table: SampleTable,
    on_unit: OnUnit,
    witness: Witness | None,
) -> _Judged:
    start = time.perf_counter()
    oracle = CountingOracle(model, batch.sample_ids, batch.images.device)
    rows = torch.arange(len(batch.labels), device=batch.images.device)
    predictions = predict(oracle, batch.images, rows).cpu().numpy()
    outcomes = np.where(predictions == batch.labels.cpu().numpy(), "robust", "skipped")
    outcomes[predictions < 0] = "failed"
    reasons = np.where(predictions < 0, _NOT_FINITE, "").astype(object)
    clean = _Judged(outcomes, predictions, np.zeros(len(outcomes)), reasons)
    unit = Unit(model.name, CLEAN, None, 0.0)
    _record(table, unit, batch, clean, oracle, time.perf_counter() - start)
    if witness is not None:
        witness.see(unit, batch, batch.images, outcomes == "robust", predictions)
    on_unit(unit)
    return clean


def _attack(
    model: ImageClassifier,
    batch: ImageBatch,
    clean: _Judged,
    attack: PlannedAttack,
    table: SampleTable,
    seed: int,
    on_unit: OnUnit,
    witness: Witness | None,
) -> None:
    judged = clean.copy()
    answerable = clean.outcomes == "robust"
    points = batch.images.clone()
    for epsilon in attack.epsilons:
        start = time.perf_counter()
        targets = np.flatnonzero(answerable & (judged.outcomes != "fooled"))
        oracle = CountingOracle(model, batch.sample_ids, batch.images.device)
        if len(targets):
            found = _attack_rows(
                model, oracle, batch, targets, attack.choice, epsilon, seed, judged
            )
            points[torch.from_numpy(targets).to(points.device)] = found.to(points)
        unit = Unit(model.name, attack.choice.label, attack.choice.norm, epsilon)
        _record(table, unit, batch, judged, oracle, time.perf_counter() - start)
        if witness is not None:
            usable = answerable & (judged.outcomes != "failed")
            witness.see(unit, batch, points, usable, judged.predictions)
        on_unit(unit)


def _attack_rows(
    model: ImageClassifier,
    oracle: CountingOracle,
    batch: ImageBatch,
    targets: npt.NDArray[np.int64],
    choice: AttackChoice,
    epsilon: float,
    seed: int,
    judged: _Judged,
) -> Tensor:
    """Attack the targets, judge them, and return the points, shape (targets, ...)."""
    rows = torch.from_numpy(targets).to(batch.images.device)
    originals, labels = batch.images[rows], batch.labels[rows]
    ids = [batch.sample_ids[row] for row in targets]
    aims = _other_classes(labels, ids, model.num_classes, seed) if choice.targeted else labels
    attack = choice if oracle.may_draw else choice.knowing_the_draw()
    points = attack.run(
        RowsOracle(oracle, rows), originals, aims, epsilon=epsilon, seed=seed, sample_ids=ids
    )
    judge = CountingOracle(model, batch.sample_ids, batch.images.device)
    verdict = verify(judge, originals, points, labels, rows, epsilon=epsilon, norm=choice.norm)
    fooled, failed = verdict.fooled.cpu().numpy(), verdict.failed.cpu().numpy()
    judged.outcomes[targets] = np.where(fooled, "fooled", np.where(failed, "failed", "robust"))
    judged.predictions[targets] = verdict.predictions.cpu().numpy()
    judged.distances[targets] = verdict.distances.cpu().numpy()
    judged.reasons[targets] = verdict.reasons
    return points


def _other_classes(labels: Tensor, ids: Sequence[str], num_classes: int, seed: int) -> Tensor:
    """Draw a target class for each sample, uniformly among the wrong ones, keyed on its id."""
    shifts = [
        int(keyed_generator(seed, "target", sample_key(each)).integers(1, num_classes))
        for each in ids
    ]
    return (labels + torch.tensor(shifts, device=labels.device)) % num_classes


def _record(
    table: SampleTable,
    unit: Unit,
    batch: ImageBatch,
    judged: _Judged,
    oracle: CountingOracle,
    seconds: float,
) -> None:
    kept = judged.copy()
    block = Block(
        sample_ids=batch.sample_ids,
        labels=batch.labels.cpu().numpy(),
        outcomes=kept.outcomes,
        predictions=kept.predictions,
        distances=kept.distances,
        forwards=oracle.forwards.cpu().numpy(),
        backwards=oracle.backwards.cpu().numpy(),
        reasons=list(kept.reasons),
    )
    table.add(unit, block, seconds)

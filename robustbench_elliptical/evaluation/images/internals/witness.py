"""Watches an evaluation and keeps what went on inside a model on a few examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.evaluation.images.internals.inside import Inside, can_look, look
from robustbench_elliptical.evaluation.images.internals.summaries import internals_record
from robustbench_elliptical.evaluation.images.records import Unit
from robustbench_elliptical.models import ImageClassifier
from robustbench_elliptical.results import InternalsRecord, PictureRecord

__all__ = ["PICTURES", "Pictures", "Witness"]

PICTURES = 4
"""Examples of which pictures are kept."""


class _Sample(NamedTuple):
    """One example as a unit left it."""

    sample_id: str
    label: int
    prediction: int
    image: Tensor
    """Shape (channels, height, width), float16, on the CPU: a copy, since points move on."""


class Pictures(NamedTuple):
    """Pictures and their arrays, by the names that `PictureRecord` states."""

    records: list[PictureRecord]
    arrays: dict[str, npt.NDArray[np.float16]]


@dataclass
class _Seen:
    """What is known of one unit."""

    ids: set[str] = field(default_factory=set)
    """Examples that went by, also those that the model classifies wrong."""
    samples: list[_Sample] = field(default_factory=list)
    """Those it classifies right when clean."""
    inside: Inside | None = None
    """Of the same ones, in their order."""


class Witness:
    """Looks at the examples of one model after each unit of an evaluation.

    Nothing that it does is charged to an attack, and no outcome depends on it.

    Parameters
    ----------
    model
        A model whose inside can't be seen gives pictures only.
    sample_ids
        The examples.
    name
        Start of the keys of its pictures, unique in a result.
    """

    def __init__(self, model: ImageClassifier, sample_ids: Sequence[str], name: str) -> None:
        self._model = model
        self._ids = list(sample_ids)
        self._name = name
        self._units: dict[Unit, _Seen] = {}

    def wants(self, batch: ImageBatch) -> bool:
        """Whether a batch holds an example."""
        return bool(set(self._ids) & set(batch.sample_ids))

    def see(
        self,
        unit: Unit,
        batch: ImageBatch,
        points: Tensor,
        right: npt.NDArray[np.bool_],
        predictions: npt.NDArray[np.int64],
    ) -> None:
        """Look at the examples of a batch.

        Parameters
        ----------
        unit
            What has just been evaluated.
        batch
            The clean images.
        points
            As the attack left them, of the same shape; where it failed, as they were before.
        right
            Whether the model classifies each clean image right, shape (batch,).
        predictions
            Class predicted at each point, shape (batch,).
        """
        here = [row for row, each in enumerate(batch.sample_ids) if each in self._ids]
        rows = [row for row in here if right[row]]
        seen = self._units.setdefault(unit, _Seen())
        if rows:
            self._look(seen, points[rows], [batch.sample_ids[row] for row in rows])
        for row in rows:
            seen.samples.append(
                _Sample(
                    batch.sample_ids[row],
                    int(batch.labels[row]),
                    int(predictions[row]),
                    points[row].detach().to("cpu", torch.float16, copy=True),
                )
            )
        seen.ids |= {batch.sample_ids[row] for row in here}

    def _look(self, seen: _Seen, images: Tensor, sample_ids: Sequence[str]) -> None:
        if not can_look(self._model):
            return
        keys = torch.tensor([sample_key(each) for each in sample_ids], device=images.device)
        inside = look(self._model, images, keys)
        seen.inside = inside if seen.inside is None else seen.inside.joined(inside)

    def internals(self) -> list[InternalsRecord]:
        """Return the record of every unit that all examples went through."""
        whole = self._whole()
        clean = next((each.inside for unit, each in whole.items() if unit.norm is None), None)
        return [
            internals_record(unit, seen.inside, None if unit.norm is None else clean)
            for unit, seen in whole.items()
            if seen.inside is not None and clean is not None
        ]

    def pictures(self) -> Pictures:
        """Return the first examples before and after every attack that all went through."""
        whole = self._whole()
        clean = next((each for unit, each in whole.items() if unit.norm is None), None)
        found = Pictures([], {})
        for unit, seen in whole.items() if clean is not None else ():
            if unit.norm is None or clean is None:
                continue
            for index in range(min(PICTURES, len(seen.samples))):
                key = f"{self._name}-{len(found.records)}"
                found.records.append(_record(key, unit, clean.samples[index], seen.samples[index]))
                found.arrays.update(_arrays(key, index, clean, seen))
        return found

    def _whole(self) -> Mapping[Unit, _Seen]:
        return {unit: seen for unit, seen in self._units.items() if seen.ids == set(self._ids)}


def _record(key: str, unit: Unit, before: _Sample, after: _Sample) -> PictureRecord:
    assert unit.norm is not None
    return PictureRecord(
        key=key,
        model=unit.model,
        attack=unit.attack,
        norm=unit.norm,
        epsilon=unit.epsilon,
        sample_id=after.sample_id,
        label=after.label,
        clean_prediction=before.prediction,
        prediction=after.prediction,
    )


def _arrays(
    key: str, index: int, clean: _Seen, attacked: _Seen
) -> dict[str, npt.NDArray[np.float16]]:
    arrays = {}
    for name, seen in (("clean", clean), ("attacked", attacked)):
        arrays[f"{key}/{name}"] = seen.samples[index].image.numpy()
    insides = (clean.inside, attacked.inside)
    if all(inside is not None and inside.maps for inside in insides):
        for name, inside in zip(("clean", "attacked"), insides, strict=True):
            assert inside is not None
            arrays[f"{key}/{name}-attention"] = inside.maps[-1][index].half().numpy()
    return arrays

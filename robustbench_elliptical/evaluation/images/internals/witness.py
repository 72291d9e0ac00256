"""Watches an evaluation and keeps what went on inside a model on a few examples."""

from collections.abc import Sequence
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
    """Shape (channels, height, width), float16 in [0, 1], on the CPU: a copy, since points move
    on. Rounding may have left a point outside by what `verify` tolerates, never here."""


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
    """Those it classifies right when clean and the attack did not fail on."""
    inside: Inside | None = None
    """Of the same ones, in their order."""

    def place(self, sample_id: str) -> int:
        """Return where a sample stands."""
        return [each.sample_id for each in self.samples].index(sample_id)


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
        usable: npt.NDArray[np.bool_],
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
            As the attack left them, of the same shape.
        usable
            Whether the model classifies each clean image right and the attack did not fail on it,
            shape (batch,).
        predictions
            Class predicted at each point, shape (batch,).
        """
        here = [row for row, each in enumerate(batch.sample_ids) if each in self._ids]
        rows = [row for row in here if usable[row]]
        seen = self._units.setdefault(unit, _Seen())
        if rows:
            self._look(seen, points[rows], [batch.sample_ids[row] for row in rows])
        for row in rows:
            seen.samples.append(
                _Sample(
                    batch.sample_ids[row],
                    int(batch.labels[row]),
                    int(predictions[row]),
                    points[row].detach().clamp(0, 1).to("cpu", torch.float16, copy=True),
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
        """Return the record of every unit that all examples went through, if all is finite."""
        found = []
        for unit, clean, seen in self._pairs():
            if seen.inside is not None and clean.inside is not None and seen.inside.finite:
                before = clean.inside.of([clean.place(each.sample_id) for each in seen.samples])
                found.append(
                    internals_record(unit, seen.inside, None if unit.norm is None else before)
                )
        return found

    def pictures(self) -> Pictures:
        """Return the first examples before and after every attack that all went through."""
        found = Pictures([], {})
        for unit, clean, seen in self._pairs():
            for index, after in enumerate(seen.samples[:PICTURES] if unit.norm else ()):
                place = clean.place(after.sample_id)
                key = f"{self._name}-{len(found.records)}"
                found.records.append(_record(key, unit, clean.samples[place], after))
                found.arrays.update(_arrays(key, (clean, place), (seen, index)))
        return found

    def _pairs(self) -> list[tuple[Unit, _Seen, _Seen]]:
        """Return each unit that all examples went through, with the clean one and its own."""
        whole = {unit: seen for unit, seen in self._units.items() if seen.ids == set(self._ids)}
        clean = [seen for unit, seen in whole.items() if unit.norm is None]
        return [(unit, clean[0], seen) for unit, seen in whole.items()] if clean else []


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
    key: str, clean: tuple[_Seen, int], attacked: tuple[_Seen, int]
) -> dict[str, npt.NDArray[np.float16]]:
    arrays, maps = {}, {}
    for name, (seen, place) in (("clean", clean), ("attacked", attacked)):
        arrays[f"{key}/{name}"] = seen.samples[place].image.numpy()
        if seen.inside is not None and seen.inside.maps and seen.inside.finite:
            maps[f"{key}/{name}-attention"] = seen.inside.maps[-1][place].half().numpy()
    return arrays | maps if len(maps) == 2 else arrays

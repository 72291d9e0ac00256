"""The meter between attack and model: counts forward and backward passes of every sample."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.models import ImageClassifier

__all__ = ["CountingOracle", "RowsOracle"]


class CountingOracle:
    """An oracle that charges each pass to the sample it was made for.

    Parameters
    ----------
    model
        Answers the queries.
    sample_ids
        One id for each of the attack's inputs.
    device
        Where the attack's inputs lie.
    """

    forwards: Tensor
    """Forward passes of each input, int64, shape (inputs,)."""
    backwards: Tensor
    """Backward passes of each input, int64, shape (inputs,)."""

    def __init__(
        self, model: ImageClassifier, sample_ids: Sequence[str], device: torch.device
    ) -> None:
        self._model = model
        self._sample_ids = sample_ids
        self._device = device
        self._keys: dict[int, Tensor] = {}
        self.forwards = torch.zeros(len(sample_ids), dtype=torch.int64, device=device)
        self.backwards = torch.zeros_like(self.forwards)

    @property
    def may_draw(self) -> bool:
        """Whether passes may differ by a random draw; foreign networks may do anything."""
        mechanisms = self._model.mechanisms()
        return not mechanisms or any(each.flags.stochastic for each in mechanisms)

    def logits(self, images: Tensor, rows: Tensor, draw: int = 0) -> Tensor:
        """Return logits, shape (rows, classes), and count the passes.

        Draw 0 is the one by which samples are judged.
        """
        self.forwards += rows.bincount(minlength=len(self.forwards))
        logits: Tensor = self._model(images, self._draw_keys(draw)[rows])
        if logits.requires_grad:
            logits.register_hook(self._count_backward(rows))  # type: ignore[no-untyped-call]
        return logits

    def _draw_keys(self, draw: int) -> Tensor:
        if draw not in self._keys:
            suffix = f"/draw/{draw}" if draw else ""
            keys = [sample_key(f"{sample_id}{suffix}") for sample_id in self._sample_ids]
            self._keys[draw] = torch.tensor(keys, dtype=torch.int64, device=self._device)
        return self._keys[draw]

    def _count_backward(self, rows: Tensor) -> Any:
        def count(gradient: Tensor) -> None:
            del gradient
            self.backwards += rows.bincount(minlength=len(self.backwards))

        return count


class RowsOracle:
    """Lets an attack on some of a batch's samples name them by their place in the batch.

    Parameters
    ----------
    oracle
        Answers for the whole batch.
    rows
        The places, int64, shape (samples,).
    """

    def __init__(self, oracle: CountingOracle, rows: Tensor) -> None:
        self._oracle = oracle
        self._rows = rows

    def logits(self, images: Tensor, rows: Tensor) -> Tensor:
        """Return logits under the draw by which samples are judged."""
        return self._oracle.logits(images, self._rows[rows])

    def logits_of_draw(self, images: Tensor, rows: Tensor, draw: int) -> Tensor:
        """Return logits under another draw, counted from 1."""
        return self._oracle.logits(images, self._rows[rows], draw)

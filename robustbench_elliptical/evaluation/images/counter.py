"""The meter between attack and model: counts forward and backward passes of every sample."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.models import ImageClassifier

__all__ = ["CountingOracle"]


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
        keys = [sample_key(sample_id) for sample_id in sample_ids]
        self._keys = torch.tensor(keys, dtype=torch.int64, device=device)
        self.forwards = torch.zeros(len(sample_ids), dtype=torch.int64, device=device)
        self.backwards = torch.zeros_like(self.forwards)

    def logits(self, images: Tensor, rows: Tensor) -> Tensor:
        """Return logits, shape (rows, classes), and count the passes."""
        self.forwards += rows.bincount(minlength=len(self.forwards))
        logits: Tensor = self._model(images, self._keys[rows])
        if logits.requires_grad:
            logits.register_hook(self._count_backward(rows))  # type: ignore[no-untyped-call]
        return logits

    def _count_backward(self, rows: Tensor) -> Any:
        def count(gradient: Tensor) -> None:
            del gradient
            self.backwards += rows.bincount(minlength=len(self.backwards))

        return count

"""The samples that no iterate has fooled yet, and the best iterate of each."""

import torch
from torch import Tensor

from robustbench_elliptical.attacks.problem import Answer, Problem

__all__ = ["ActiveSet"]


class ActiveSet:
    """Shrinks as samples are fooled; a fooled sample costs no further pass.

    Parameters
    ----------
    problem
        What is attacked. Every sample starts active, with its own image as its best iterate.

    Attributes
    ----------
    rows
        Which images are still active, int64, shape (active,).
    keys, labels, images, origins
        Their sample keys, labels, images in the caller's dtype and in the working precision.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows = torch.arange(len(problem.keys), device=problem.images.device)
        self.keys = list(problem.keys)
        self.labels = problem.labels
        self.origins = problem.images.to(problem.precision)
        self._best = problem.images
        self._best_scores = torch.full(
            (len(self.keys),), float("-inf"), device=problem.images.device
        )
        self._result = torch.empty_like(problem.images)

    def __len__(self) -> int:
        return len(self.keys)

    def rounded(self, points: Tensor) -> Tensor:
        """Return iterates of the active samples as the model gets them."""
        return self.problem.rounded(points, self.origins)

    def ask(self, queried: Tensor) -> Answer:
        """Ask the model about one iterate of each active sample. One forward."""
        return self.problem.ask(queried, self.rows, self.labels)

    def settle(self, queried: Tensor, answer: Answer) -> Tensor | None:
        """Remember these iterates where they are the best, and drop the samples that are fooled.

        Parameters
        ----------
        queried
            The iterates, as the model got them, detached; shape (active, ...).
        answer
            What the model said about them.

        Returns
        -------
        Tensor or None
            The positions that stay active, int64, for the caller to shrink what it holds; None
            if all stay.
        """
        if not bool(answer.fooled.any()):
            better = answer.scores > self._best_scores
            shaped = better.view(-1, *[1] * (queried.dim() - 1))
            self._best = torch.where(shaped, queried, self._best)
            self._best_scores = torch.where(better, answer.scores, self._best_scores)
            return None
        self._result[self.rows[answer.fooled]] = queried[answer.fooled]
        kept = (~answer.fooled).nonzero().squeeze(1)
        self._shrink(kept)
        if len(kept):
            rest = Answer(answer.losses[kept], answer.scores[kept], answer.fooled[kept])
            self.settle(queried[kept], rest)
        return kept

    def finish(self) -> Tensor:
        """Return the best iterate of every sample, in the order of the inputs."""
        self._result[self.rows] = self._best
        return self._result

    def _shrink(self, kept: Tensor) -> None:
        self.rows = self.rows[kept]
        self.keys = [self.keys[position] for position in kept.tolist()]
        self.labels = self.labels[kept]
        self.origins = self.origins[kept]
        self._best = self._best[kept]
        self._best_scores = self._best_scores[kept]

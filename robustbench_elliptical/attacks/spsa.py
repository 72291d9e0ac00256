"""SPSA: an attack that sees logits only, never gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from robustbench_elliptical.attacks.active import ActiveSet
from robustbench_elliptical.attacks.draws import packed_signs, random_point
from robustbench_elliptical.attacks.problem import Answer, prepare
from robustbench_elliptical.attacks.projections import project
from robustbench_elliptical.attacks.settings import checked
from robustbench_elliptical.attacks.spsa_gradient import estimate_gradient
from robustbench_elliptical.attacks.vocabulary import Count, Draws, LinfOnly, PairRows, Pixels
from robustbench_elliptical.core.oracle import LogitsFunction, Oracle

__all__ = ["spsa"]


@checked
@torch.no_grad()
def spsa(
    model: LogitsFunction | Oracle,
    inputs: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    norm: LinfOnly = "linf",
    steps: Count = 20,
    samples: Count = 32,
    delta: Pixels = 0.01,
    learning_rate: Pixels = 0.01,
    random_start: bool = False,
    max_rows: PairRows = 256,
    targeted: bool = False,
    draws: Draws = 1,
    seed: int = 0,
    sample_ids: Sequence[str] | None = None,
) -> Tensor:
    """Climb the margin loss by Adam on SPSA gradients (Uesato et al. 2018, arXiv 1802.05666).

    Algorithm 1: at each step the gradient at the current, already perturbed image is estimated from
    pairs of random probes, Adam moves the image, and the move is projected to the ball and to
    [0, 1]. Each sample gets the first iterate that fools the model, else the one of highest loss,
    and stops once fooled.

    A sample that resists costs steps * (2 * samples + 1) + 1 forwards: the probes, and one for
    each iterate, the start included. One that iterate t fools costs t * (2 * samples + 1) + 1. No
    backward, and no gradient is recorded.

    Parameters
    ----------
    model
        Logits from images, or an `Oracle`; its train or eval mode stays as it is.
    inputs
        Shape (batch, ...), pixels in [0, 1].
    labels
        The true classes, or the wanted ones if `targeted`; int64, shape (batch,).
    epsilon
        Radius of the ball around each input in [0, 1] pixels, such as 8/255.
    norm
        ``"linf"`` only.
    steps
        Steps of Adam.
    samples
        Pairs of probes for each image and step, each image with directions of its own.
    delta
        How far a probe moves each pixel, in [0, 1] pixels. Probes stay in [0, 1] but may leave the
        ball.
    learning_rate
        Adam's, in [0, 1] pixels: about how far a pixel moves in a step.
    random_start
        Whether to start at a point drawn from the ball.
    max_rows
        Most rows (probes times images) in one forward, at least 2: what bounds the memory. It does
        not change the result.
    targeted
        Whether to move toward `labels` rather than away from them.
    draws
        How many random draws of the model each loss is averaged over; every draw costs the passes
        of one. 1: the fixed draw that an `Oracle` answers by, where it has one.
    seed
        Seed, 0 or more.
    sample_ids
        What each sample's draws are keyed on; "0", "1", ... by position if None.

    Returns
    -------
    Tensor
        The adversarial images, of the inputs' shape and dtype.

    Raises
    ------
    UsageError
        If an argument is not as described.
    """
    problem = prepare(
        model,
        inputs,
        labels,
        epsilon=epsilon,
        norm=norm,
        seed=seed,
        sample_ids=sample_ids,
        targeted=targeted,
        draws=draws,
    )
    if problem.solved:
        return problem.images.clone()
    active = ActiveSet(problem)
    points = _start(active, random_start)
    adam = _Adam(points, learning_rate)
    for step in range(steps + 1):
        queried = active.rounded(points)
        kept = active.settle(queried, _ask(active, queried, max_rows))
        if step == steps or not len(active):
            break
        if kept is not None:
            points = points[kept]
            adam.shrink(kept)
        gradient = _gradient(active, points, step, samples, delta, max_rows)
        points = project(adam.move(points, gradient), active.origins, problem.epsilon, norm)
    return active.finish()


def _start(active: ActiveSet, random_start: bool) -> Tensor:
    if not random_start:
        return active.origins.clone()
    problem = active.problem
    return random_point(
        active.origins,
        active.keys,
        epsilon=problem.epsilon,
        norm=problem.norm,
        seed=problem.seed,
        stream="spsa/start",
        restart=0,
    )


def _ask(active: ActiveSet, queried: Tensor, max_rows: int) -> Answer:
    """Ask about one iterate of each active sample, in forwards of at most `max_rows` rows."""
    parts = [
        active.problem.ask(*part)
        for part in zip(
            torch.split(queried, max_rows),
            torch.split(active.rows, max_rows),
            torch.split(active.labels, max_rows),
            strict=True,
        )
    ]
    if len(parts) == 1:
        return parts[0]
    return Answer(
        torch.cat([part.losses for part in parts]),
        torch.cat([part.scores for part in parts]),
        torch.cat([part.fooled for part in parts]),
    )


def _gradient(
    active: ActiveSet, points: Tensor, step: int, samples: int, delta: float, max_rows: int
) -> Tensor:
    problem = active.problem
    shape = (samples, *points.shape[1:])

    def loss(probes: Tensor, which: Tensor) -> Tensor:
        rounded = probes.to(problem.images.dtype)
        return problem.losses(rounded, active.rows[which], active.labels[which])

    def bits(start: int, stop: int) -> Tensor:
        keys = active.keys[start:stop]
        packed = packed_signs(problem.seed, "spsa/directions", keys, shape, step)
        return packed.to(points.device)

    return estimate_gradient(loss, points, bits, samples=samples, delta=delta, max_rows=max_rows)


class _Adam:
    """Adam (Kingma & Ba 2015, algorithm 1), uphill, over samples that may be dropped."""

    def __init__(self, points: Tensor, learning_rate: float) -> None:
        self._learning_rate = learning_rate
        self._first = torch.zeros_like(points)
        self._second = torch.zeros_like(points)
        self._count = 0

    def shrink(self, kept: Tensor) -> None:
        """Keep the moments of these positions only."""
        self._first = self._first[kept]
        self._second = self._second[kept]

    def move(self, points: Tensor, gradient: Tensor) -> Tensor:
        """Return the points after one step up the gradient."""
        self._count += 1
        self._first.lerp_(gradient, 1 - 0.9)
        self._second.mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
        rate = self._learning_rate / (1 - 0.9**self._count)
        spread = (self._second / (1 - 0.999**self._count)).sqrt_().add_(1e-8)
        return points.addcdiv(self._first, spread, value=rate)

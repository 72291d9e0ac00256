"""Projected gradient descent, with restarts and the best iterate of each sample."""

from collections.abc import Sequence

import torch
from torch import Tensor

from robustbench_elliptical.attacks.active import ActiveSet
from robustbench_elliptical.attacks.draws import random_point
from robustbench_elliptical.attacks.problem import input_gradient, prepare
from robustbench_elliptical.attacks.projections import project, scaled_direction
from robustbench_elliptical.attacks.settings import checked
from robustbench_elliptical.attacks.vocabulary import Count, Draws, LossName, Norm, OptionalPixels
from robustbench_elliptical.core.oracle import LogitsFunction, Oracle

__all__ = ["pgd"]


@checked
def pgd(
    model: LogitsFunction | Oracle,
    inputs: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    norm: Norm = "linf",
    steps: Count = 20,
    step_size: OptionalPixels = None,
    random_start: bool = True,
    restarts: Count = 1,
    loss: LossName = "cross-entropy",
    targeted: bool = False,
    draws: Draws = 1,
    seed: int = 0,
    sample_ids: Sequence[str] | None = None,
) -> Tensor:
    """Climb the loss by projected gradient steps (Madry et al. 2018, arXiv 1706.06083).

    x <- project(x + step_size * sign(gradient)) for linf (section 2.1), with the unit gradient for
    l2. Each sample gets the first iterate that fools the model, else the one of highest loss, over
    all restarts. A sample that is fooled stops, and restarts go to the survivors only.

    A sample that resists costs restarts * (steps + 1) forwards and restarts * steps backwards: the
    last iterate of each run is scored too. One that iterate t of the first run fools (the start is
    iterate 0) costs t + 1 forwards and t backwards, or t + 1 if its last pass is shared with a
    sample that goes on.

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
        ``"linf"`` or ``"l2"``.
    steps
        Gradient steps of each run.
    step_size
        Length of a step in [0, 1] pixels; 2.5 * epsilon / steps if None, which crosses the ball
        from any start and still settles.
    random_start
        Whether the first run starts at a point drawn from the ball; later runs always do.
    restarts
        How many runs at most.
    loss
        What the steps increase: ``"cross-entropy"``, ``"margin"`` or ``"dlr"``.
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
        If an argument is not as described, or the model gives no gradient.
    """
    problem = prepare(
        model,
        inputs,
        labels,
        epsilon=epsilon,
        norm=norm,
        seed=seed,
        sample_ids=sample_ids,
        loss=loss,
        targeted=targeted,
        draws=draws,
    )
    if problem.solved:
        return problem.images.clone()
    active = ActiveSet(problem)
    length = 2.5 * problem.epsilon / steps if step_size is None else step_size
    for restart in range(restarts):
        _run(active, steps, length, restart if random_start or restart > 0 else None)
        if not len(active):
            break
    return active.finish()


def _run(active: ActiveSet, steps: int, length: float, restart: int | None) -> None:
    """Climb from the draw of `restart`, or from the inputs if None; `active` keeps the findings."""
    points = _start(active, restart)
    for _ in range(steps):
        with torch.enable_grad():
            queried = active.rounded(points).requires_grad_()
            answer = active.ask(queried)
        points = points.detach()
        kept = active.settle(queried.detach(), answer)
        losses = answer.losses
        if kept is not None:
            if not len(active):
                return
            points = points[kept]
            with torch.enable_grad():
                losses = losses[kept]
        gradient = input_gradient(losses, queried)
        if kept is not None:
            gradient = gradient[kept]
        points = _step(active, points, gradient, length)
    with torch.no_grad():
        queried = active.rounded(points)
        active.settle(queried, active.ask(queried))


def _start(active: ActiveSet, restart: int | None) -> Tensor:
    if restart is None:
        return active.origins.clone()
    problem = active.problem
    return random_point(
        active.origins,
        active.keys,
        epsilon=problem.epsilon,
        norm=problem.norm,
        seed=problem.seed,
        stream="pgd/start",
        restart=restart,
    )


def _step(active: ActiveSet, points: Tensor, gradient: Tensor, length: float) -> Tensor:
    problem = active.problem
    step = scaled_direction(gradient, length, problem.norm).to(points.dtype)
    return project(step.add_(points), active.origins, problem.epsilon, problem.norm)

"""The fast gradient sign method: one step along the gradient."""

from collections.abc import Sequence

import torch
from torch import Tensor

from robustbench_elliptical.attacks.problem import input_gradient, prepare
from robustbench_elliptical.attacks.projections import project, scaled_direction
from robustbench_elliptical.attacks.settings import checked
from robustbench_elliptical.attacks.vocabulary import Draws, LossName, Norm
from robustbench_elliptical.core.oracle import LogitsFunction, Oracle

__all__ = ["fgsm"]


@checked
def fgsm(
    model: LogitsFunction | Oracle,
    inputs: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    norm: Norm = "linf",
    loss: LossName = "cross-entropy",
    targeted: bool = False,
    draws: Draws = 1,
    seed: int = 0,
    sample_ids: Sequence[str] | None = None,
) -> Tensor:
    """Take one step of size epsilon along the gradient of the loss, then clamp to [0, 1].

    x + epsilon * sign(gradient) for linf (Goodfellow et al. 2015, arXiv 1412.6572, section 4),
    x + epsilon * gradient / length(gradient) for l2. Costs 1 forward and 1 backward an image.

    Parameters
    ----------
    model
        Logits from images, or an `Oracle`; its train or eval mode stays as it is.
    inputs
        Shape (batch, ...), pixels in [0, 1].
    labels
        The true classes, or the wanted ones if `targeted`; int64, shape (batch,).
    epsilon
        Size of the step in [0, 1] pixels, such as 8/255.
    norm
        ``"linf"`` or ``"l2"``.
    loss
        What the step increases: ``"cross-entropy"``, ``"margin"`` or ``"dlr"``.
    targeted
        Whether to move toward `labels` rather than away from them.
    draws
        How many random draws of the model each loss is averaged over; every draw costs the passes
        of one. 1: the fixed draw that an `Oracle` answers by, where it has one.
    seed, sample_ids
        Accepted as by every attack; nothing is drawn.

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
    rows = torch.arange(len(problem.keys), device=problem.images.device)
    with torch.enable_grad():
        queried = problem.images.detach().requires_grad_()
        losses = problem.losses(queried, rows, problem.labels)
    step = scaled_direction(input_gradient(losses, queried), problem.epsilon, norm)
    origins = problem.images.to(problem.precision)
    points = step.to(problem.precision).add_(origins)
    return problem.rounded(project(points, origins, problem.epsilon, norm), origins)

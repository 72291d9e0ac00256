"""Random noise: the control that every attack has to beat."""

from collections.abc import Sequence

from torch import Tensor

from robustbench_elliptical.attacks.draws import (
    packed_signs,
    random_normal,
    random_uniform,
    unpack_signs,
)
from robustbench_elliptical.attacks.problem import Problem, prepare
from robustbench_elliptical.attacks.projections import project, scaled_direction
from robustbench_elliptical.attacks.settings import checked
from robustbench_elliptical.attacks.vocabulary import NoiseKind, Norm
from robustbench_elliptical.core.oracle import LogitsFunction, Oracle

__all__ = ["noise"]


@checked
def noise(
    model: LogitsFunction | Oracle,
    inputs: Tensor,
    labels: Tensor,
    *,
    epsilon: float,
    norm: Norm = "linf",
    kind: NoiseKind = "sign",
    seed: int = 0,
    sample_ids: Sequence[str] | None = None,
) -> Tensor:
    """Add random noise of size epsilon, then clamp to [0, 1].

    A control: an attack that fools no more samples than noise has found nothing. Costs no forward
    and no backward.

    Parameters
    ----------
    model
        Not asked.
    inputs
        Shape (batch, ...), pixels in [0, 1].
    labels
        Not needed; int64, shape (batch,).
    epsilon
        Size of the noise in [0, 1] pixels, such as 8/255.
    norm
        ``"linf"`` or ``"l2"``.
    kind
        ``"sign"``: every pixel moves equally far, up or down at random, and the noise has size
        epsilon in either norm. ``"uniform"``: uniform in the linf ball, or for l2 a uniformly
        random direction of length epsilon.
    seed
        Seed, 0 or more.
    sample_ids
        What each sample's draw is keyed on; "0", "1", ... by position if None.

    Returns
    -------
    Tensor
        The noisy images, of the inputs' shape and dtype.

    Raises
    ------
    UsageError
        If an argument is not as described.
    """
    problem = prepare(
        model, inputs, labels, epsilon=epsilon, norm=norm, seed=seed, sample_ids=sample_ids
    )
    if problem.solved:
        return problem.images.clone()
    origins = problem.images.to(problem.precision)
    points = origins + _offsets(problem, origins, kind)
    return problem.rounded(project(points, origins, problem.epsilon, norm), origins)


def _offsets(problem: Problem, origins: Tensor, kind: NoiseKind) -> Tensor:
    seed, stream, keys = problem.seed, f"noise/{kind}", problem.keys
    if kind == "sign":
        shape = origins.shape[1:]
        packed = packed_signs(seed, stream, keys, (1, *shape)).to(origins.device)
        draws = unpack_signs(packed, shape, origins.dtype).squeeze(1)
    elif problem.norm == "linf":
        draws = random_uniform(seed, stream, keys, origins)
    else:
        draws = random_normal(seed, stream, keys, origins)
    if problem.norm == "linf":
        return draws.mul_(problem.epsilon)
    return scaled_direction(draws, problem.epsilon, "l2")

"""Choose a part of a data set: seeded, balanced over classes, nested."""

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.data.base import ImageData

__all__ = ["select"]


def select(data: ImageData, limit: int | None, seed: int) -> list[int]:
    """Return the increasing indices of at most `limit` samples.

    Samples of a class are ranked by a hash of (seed, sample id), and classes take turns, so that
    the choice depends on ids, labels and seed alone: not on the order of the set. Class counts
    differ by at most one as long as every class has samples left, and a smaller limit chooses from
    what a larger one chooses.

    Parameters
    ----------
    data
        The set.
    limit
        How many; none, or more than there are, for all.
    seed
        Which choice.

    Raises
    ------
    UsageError
        If `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit}; leave it out for every sample")
    if limit is None or limit >= len(data):
        return list(range(len(data)))
    members: dict[int, list[tuple[int, str, int]]] = {}
    for index, (label, sample_id) in enumerate(
        zip(data.labels.tolist(), data.sample_ids, strict=True)
    ):
        rank = sample_key(f"subset/{seed}/sample/{sample_id}")
        members.setdefault(label, []).append((rank, sample_id, index))
    turns = [
        (turn, sample_key(f"subset/{seed}/class/{label}"), label, index)
        for label, ranked in members.items()
        for turn, (_, _, index) in enumerate(sorted(ranked))
    ]
    return sorted(index for _, _, _, index in sorted(turns)[:limit])

"""Which words of a document are swapped: nested over rates, keyed on seed, document and position.

Each position has a rank of its own, a number of Philox's stream for (seed, document), and the
lowest ranks are swapped first. So whatever is swapped at a rate is swapped at every higher one.
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.traits import Traits
from robustbench_elliptical.core.randomness import keyed_generator, sample_key

__all__ = ["Mode", "choose", "draws", "exact_count"]

Mode = Literal["exact-rate", "paper"]
"""How many words are swapped, and which may be.

exact-rate
    Of the n eligible words of a document, the whole number nearest to rate * n (half is rounded
    up). Every word is eligible, stop words and numbers too.
paper
    What the paper's use of TextAttack asks for: in each line that has words, max(int(rate * n), 1)
    of them, where n counts TextAttack's words, stop words and ``<unk>`` among them. Stop words are
    not eligible in lower case; ``The`` is. Short lines get far more than the rate: see the
    realised one. Two things are mended: exactly that many words are swapped, not now and then one
    fewer, and a token is swapped whole (``N.B``), never in part.
"""


def exact_count(rate: float, eligible: npt.NDArray[np.bool_]) -> int:
    """Return the whole number nearest to `rate` times the eligible words; half is rounded up."""
    return math.floor(rate * int(np.count_nonzero(eligible)) + 0.5)


def draws(seed: int, document_id: str, stream: str, count: int) -> npt.NDArray[np.uint64]:
    """Draw one number of 64 random bits for each position.

    Parameters
    ----------
    seed, document_id
        What the draw is keyed on.
    stream
        What the draws are for.
    count
        How many positions; the first ones are the same whatever it is.
    """
    generator = keyed_generator(seed, f"text/{stream}", sample_key(document_id))
    return generator.bit_generator.random_raw(count)


def choose(
    traits: Traits,
    eligible: npt.NDArray[np.bool_],
    ranks: npt.NDArray[np.uint64],
    rate: float,
    mode: Mode,
) -> npt.NDArray[np.bool_]:
    """Return which positions are swapped, in time linear in the length of the document.

    Parameters
    ----------
    traits
        Of every token of the document.
    eligible
        Which positions may be swapped.
    ranks
        One for each position; low ones go first.
    rate
        In [0, 1]; 0 swaps nothing in either mode.
    mode
        See `Mode`.
    """
    swapped = np.zeros(len(eligible), dtype=np.bool_)
    if rate == 0:
        return swapped
    if mode == "exact-rate":
        positions = np.flatnonzero(eligible)
        swapped[_lowest(positions, ranks, exact_count(rate, eligible))] = True
        return swapped
    for start, stop, count in _lines(traits, rate):
        positions = start + np.flatnonzero(eligible[start:stop])
        swapped[_lowest(positions, ranks, count)] = True
    return swapped


def _lines(traits: Traits, rate: float) -> list[tuple[int, int, int]]:
    """Return where each line with words starts and stops, and how many of them to swap."""
    length = len(traits.line_ends)
    stops = np.append(np.flatnonzero(traits.line_ends), length)
    starts = np.append(0, stops[:-1])
    before = np.append(0, np.cumsum(traits.pieces, dtype=np.int64))
    words = before[stops] - before[starts]
    counts = np.maximum((rate * words).astype(np.int64), 1)
    kept = words > 0
    return list(
        zip(starts[kept].tolist(), stops[kept].tolist(), counts[kept].tolist(), strict=True)
    )


def _lowest(
    positions: npt.NDArray[np.intp], ranks: npt.NDArray[np.uint64], count: int
) -> npt.NDArray[np.intp]:
    """Return the `count` positions of lowest rank, or all if they are fewer."""
    if count >= len(positions):
        return positions
    if count == 0:
        return positions[:0]
    return positions[np.argpartition(ranks[positions], count - 1)[:count]]

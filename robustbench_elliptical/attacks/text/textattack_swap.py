"""Word transformations of the TextAttack library, through its Augmenter, under our selection."""

from collections.abc import Sequence

import numpy as np

from robustbench_elliptical.attacks.checks import check_seed
from robustbench_elliptical.attacks.text.checks import check_rate, check_words, checked_as
from robustbench_elliptical.attacks.text.contaminated import Contaminated
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.selection import Mode, choose, draws
from robustbench_elliptical.attacks.text.textattack_classes import TransformationName
from robustbench_elliptical.attacks.text.textattack_process import textattack_process
from robustbench_elliptical.attacks.text.traits import LINE_END, UNKNOWN, traits_of

__all__ = ["textattack_swap"]


@checked_as("textattack")
def textattack_swap(
    words: Sequence[str],
    rate: float,
    document_id: str,
    lexicon: Lexicon | None = None,
    *,
    transformation: TransformationName = "",
    mode: Mode = "exact-rate",
    seed: int = 0,
) -> Contaminated:
    """Swap words for what a TextAttack transformation makes of them.

    We choose the words, as word-swap does; TextAttack's Augmenter gets each by itself, so that the
    cost grows with their number and not with its square, and its answer depends on seed, document
    id and position alone. A word that the transformation leaves alone, drops or splits into several
    stays and is not counted as swapped: the realised rate may be below the asked one.

    Parameters
    ----------
    words
        The words of one document, ``<eos>`` at the end of each line.
    rate
        Share of the eligible words, in [0, 1].
    document_id
        What the draws are keyed on, beside the seed.
    lexicon
        Not needed: a word that no vocabulary holds becomes ``<unk>`` when it is encoded.
    transformation
        A class of ``textattack.transformations`` that swaps words and works offline.
    mode
        ``"exact-rate"`` or ``"paper"``; see `robustbench_elliptical.attacks.text.selection.Mode`.
    seed
        Seed, 0 or more.

    Returns
    -------
    Contaminated
        As many words as before.

    Raises
    ------
    UsageError
        If an argument is not as described, TextAttack is not installed, or the class fails.
    """
    del lexicon
    check_words(words)
    traits = traits_of(words)
    eligible = traits.swappable if mode == "exact-rate" else traits.content
    ranks = draws(check_seed(seed), document_id, "order", len(words))
    chosen = np.flatnonzero(choose(traits, eligible, ranks, check_rate(rate), mode)).tolist()
    seeds = draws(seed, document_id, f"textattack/{transformation}", len(words)) >> np.uint64(32)
    result = list(words)
    swapped = np.zeros(len(words), dtype=np.bool_)
    if chosen:
        new = textattack_process().swap(
            transformation, [words[position] for position in chosen], seeds[chosen].tolist()
        )
        for position, word in zip(chosen, new, strict=True):
            if _is_swap(words[position], word):
                result[position] = word
                swapped[position] = True
    return Contaminated(
        words=tuple(result), swapped=swapped, eligible=eligible, line_ends=traits.line_ends
    )


def _is_swap(old: str, new: str) -> bool:
    return new != old and new.split() == [new] and new not in (LINE_END, UNKNOWN)

"""Character noise: one edit in each chosen word, without asking any model."""

from collections.abc import Sequence

import numpy as np

from robustbench_elliptical.attacks.checks import check_seed
from robustbench_elliptical.attacks.text.checks import check_rate, check_words, checked_as
from robustbench_elliptical.attacks.text.contaminated import Contaminated
from robustbench_elliptical.attacks.text.edits import EditKind, edited, places
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.selection import choose, draws
from robustbench_elliptical.attacks.text.traits import traits_of

__all__ = ["char_noise"]


@checked_as("char-noise")
def char_noise(
    words: Sequence[str],
    rate: float,
    document_id: str,
    lexicon: Lexicon | None = None,
    *,
    kind: EditKind = "substitute",
    seed: int = 0,
) -> Contaminated:
    """Make one random edit in each of some words of a document.

    As many words as in the exact rate of word-swap, of those that the edit can change: a single
    letter can't be deleted, and only some have a homoglyph. What is edited, and how, depends on
    seed, document id and position alone, and stays as it is at every higher rate.

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
    kind
        ``"delete"``, ``"insert"`` or ``"substitute"`` a letter, ``"swap-neighbours"``: two
        different characters side by side change places, ``"keyboard"``: the letter of a
        neighbouring key, or ``"homoglyph"``: a Cyrillic letter that looks the same.
    seed
        Seed, 0 or more.

    Returns
    -------
    Contaminated
        As many words as before.

    Raises
    ------
    UsageError
        If an argument is not as described.
    """
    del lexicon
    check_words(words)
    traits = traits_of(words)
    editable = np.fromiter((bool(places(word, kind)) for word in words), np.bool_, len(words))
    eligible = traits.swappable & editable
    ranks = draws(check_seed(seed), document_id, "order", len(words))
    swapped = choose(traits, eligible, ranks, check_rate(rate), "exact-rate")
    where = draws(seed, document_id, "char-noise/place", len(words))
    what = draws(seed, document_id, "char-noise/letter", len(words))
    result = list(words)
    for position in np.flatnonzero(swapped).tolist():
        result[position] = edited(words[position], kind, int(where[position]), int(what[position]))
    return Contaminated(
        words=tuple(result), swapped=swapped, eligible=eligible, line_ends=traits.line_ends
    )

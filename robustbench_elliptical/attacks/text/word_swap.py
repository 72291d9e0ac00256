"""Word swap: replace words at a rate, without asking any model."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.checks import check_seed
from robustbench_elliptical.attacks.text.checks import (
    check_rate,
    check_tokens,
    check_words,
    checked_as,
)
from robustbench_elliptical.attacks.text.contaminated import Contaminated, ContaminatedTokens
from robustbench_elliptical.attacks.text.lexicon import Lexicon, WordTable, word_table
from robustbench_elliptical.attacks.text.selection import Mode, choose, draws
from robustbench_elliptical.attacks.text.traits import UNKNOWN, Traits, traits_of
from robustbench_elliptical.core.errors import UsageError

__all__ = ["Replacement", "word_swap", "word_swap_tokens"]

Replacement = Literal["AAA", "random-word", "unk"]
"""What stands in the place of a word: the generic ``AAA``, a word of the vocabulary drawn by its
frequency, or ``<unk>``."""

_FIXED = {"AAA": "AAA", "unk": UNKNOWN}


@checked_as("word-swap")
def word_swap(
    words: Sequence[str],
    rate: float,
    document_id: str,
    lexicon: Lexicon | None = None,
    *,
    replacement: Replacement = "AAA",
    mode: Mode = "exact-rate",
    seed: int = 0,
) -> Contaminated:
    """Swap words of a document, as the Elliptical Attention paper does on WikiText-103.

    Never swapped: ``<eos>``, ``<unk>``, and tokens without a letter or digit. What is swapped for
    what depends on seed, document id and position alone; what is swapped at a rate is swapped, for
    the same word, at every higher rate.

    Parameters
    ----------
    words
        The words of one document, ``<eos>`` at the end of each line.
    rate
        Share of the eligible words, in [0, 1].
    document_id
        What the draws are keyed on, beside the seed.
    lexicon
        The vocabulary to draw from; only ``random-word`` needs it.
    replacement
        ``"AAA"``, ``"random-word"`` or ``"unk"``.
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
        If an argument is not as described.
    """
    check_words(words)
    traits = traits_of(words)
    eligible = _eligible(traits, mode)
    if replacement == "AAA":
        eligible &= np.fromiter((word != "AAA" for word in words), np.bool_, count=len(words))
    swapped = _swapped(traits, eligible, rate, mode, seed, document_id)
    positions = np.flatnonzero(swapped)
    result = list(words)
    if replacement == "random-word":
        table = _table(lexicon)
        own = table.numbers([words[position] for position in positions.tolist()])
        numbers = table.others(own, _word_draws(seed, document_id, len(words))[positions])
        new = [table.lexicon.words[number] for number in numbers.tolist()]
    else:
        new = [_FIXED[replacement]] * len(positions)
    for position, word in zip(positions.tolist(), new, strict=True):
        result[position] = word
    return Contaminated(
        words=tuple(result), swapped=swapped, eligible=eligible, line_ends=traits.line_ends
    )


@checked_as("word-swap")
def word_swap_tokens(
    tokens: npt.NDArray[np.integer],
    rate: float,
    document_id: str,
    lexicon: Lexicon,
    *,
    replacement: Replacement = "AAA",
    mode: Mode = "exact-rate",
    seed: int = 0,
) -> ContaminatedTokens:
    """Swap words of a document that is encoded already; see `word_swap`.

    A word outside the vocabulary is ``<unk>`` here, and so protected; `word_swap` still sees it.
    On a document without such words both swap the same positions for the same words.

    Parameters
    ----------
    tokens
        Numbers of one document's words, shape (words,).
    lexicon
        The vocabulary that numbers them.
    rate, document_id, replacement, mode, seed
        See `word_swap`. ``AAA`` is ``<unk>`` where the vocabulary lacks it.

    Returns
    -------
    ContaminatedTokens
        As many tokens as before, int64.

    Raises
    ------
    UsageError
        If an argument is not as described.
    """
    table = _table(lexicon)
    checked = check_tokens(tokens, len(lexicon.words))
    traits = table.traits.take(checked)
    eligible = _eligible(traits, mode)
    new_number = table.number(_FIXED.get(replacement, UNKNOWN))
    if replacement == "AAA":
        eligible &= checked != new_number
    swapped = _swapped(traits, eligible, rate, mode, seed, document_id)
    result = checked.copy()
    if replacement == "random-word":
        result[swapped] = table.others(
            checked[swapped], _word_draws(seed, document_id, len(checked))[swapped]
        )
    else:
        result[swapped] = new_number
    return ContaminatedTokens(
        tokens=result, swapped=swapped, eligible=eligible, line_ends=traits.line_ends
    )


def _eligible(traits: Traits, mode: Mode) -> npt.NDArray[np.bool_]:
    return (traits.swappable if mode == "exact-rate" else traits.content).copy()


def _swapped(
    traits: Traits,
    eligible: npt.NDArray[np.bool_],
    rate: float,
    mode: Mode,
    seed: int,
    document_id: str,
) -> npt.NDArray[np.bool_]:
    ranks = draws(check_seed(seed), document_id, "order", len(eligible))
    return choose(traits, eligible, ranks, check_rate(rate), mode)


def _word_draws(seed: int, document_id: str, count: int) -> npt.NDArray[np.uint64]:
    return draws(seed, document_id, "word-swap/word", count)


def _table(lexicon: Lexicon | None) -> WordTable:
    if lexicon is None:
        raise UsageError(
            "replacement random-word needs a vocabulary to draw from; use replacement=AAA or unk"
        )
    return word_table(lexicon)

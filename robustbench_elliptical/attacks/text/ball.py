"""Every text that a swap attack may return: a document with at most so many words swapped."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.checks import check_rate, check_tokens
from robustbench_elliptical.attacks.text.contaminated import ContaminatedTokens
from robustbench_elliptical.attacks.text.lexicon import Lexicon, word_table
from robustbench_elliptical.attacks.text.oracle import Tokens
from robustbench_elliptical.attacks.text.selection import exact_count
from robustbench_elliptical.core.errors import UsageError

__all__ = ["SwapBall", "swap_ball"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SwapBall:
    """The document and what may become of it."""

    tokens: Tokens
    """The document itself, shape (words,)."""
    eligible: npt.NDArray[np.bool_]
    """Whether each position may be swapped, shape (words,)."""
    line_ends: npt.NDArray[np.bool_]
    """Whether each position holds ``<eos>``, shape (words,)."""
    replacements: npt.NDArray[np.bool_]
    """Whether each word of the vocabulary may stand in, shape (vocabulary,)."""
    limit: int
    """Most positions that may be swapped."""

    def swapped(self, tokens: Tokens) -> npt.NDArray[np.bool_]:
        """Return which positions hold another word than the document's, shape (words,)."""
        swapped: npt.NDArray[np.bool_] = tokens != self.tokens
        return swapped

    def contaminated(self, tokens: Tokens) -> ContaminatedTokens:
        """Return a text of the ball as the result of an attack."""
        return ContaminatedTokens(
            tokens=tokens,
            swapped=self.swapped(tokens),
            eligible=self.eligible,
            line_ends=self.line_ends,
        )

    def check_start(self, start: npt.NDArray[np.integer]) -> Tokens:
        """Return a text as int64; raises `UsageError` if it isn't one of the ball's."""
        tokens = check_tokens(start, len(self.replacements))
        if len(tokens) != len(self.tokens):
            raise UsageError(
                f"start must have the document's {len(self.tokens)} tokens, got {len(tokens)}"
            )
        swapped = self.swapped(tokens)
        if (swapped & ~self.eligible).any() or not self.replacements[tokens[swapped]].all():
            raise UsageError(
                "start must swap words for words, got one that swaps a protected token or puts one "
                "in; use what the attack returned at a smaller rate"
            )
        if np.count_nonzero(swapped) > self.limit:
            raise UsageError(
                f"start must swap at most {self.limit} words at this rate, got "
                f"{np.count_nonzero(swapped)}; use what the attack returned at a smaller rate"
            )
        return tokens


def swap_ball(tokens: npt.NDArray[np.integer], rate: float, lexicon: Lexicon) -> SwapBall:
    """Return the ball of the exact rate of word-swap around a document.

    Parameters
    ----------
    tokens
        Numbers of the document's words, shape (words,).
    rate
        Share of the eligible words, in [0, 1]; their number is rounded as word-swap rounds it.
    lexicon
        The vocabulary that numbers them.

    Raises
    ------
    UsageError
        If tokens or rate are not as described.
    """
    words = word_table(lexicon).traits
    checked = check_tokens(tokens, len(words.swappable))
    traits = words.take(checked)
    return SwapBall(
        tokens=checked,
        eligible=traits.swappable,
        line_ends=traits.line_ends,
        replacements=words.swappable,
        limit=exact_count(check_rate(rate), traits.swappable),
    )

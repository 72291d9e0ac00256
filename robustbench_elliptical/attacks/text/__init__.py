"""Contamination of text: plain functions, and a registry that the command line reads.

An attack takes ``(words, rate, document_id, lexicon, *, settings, seed)``, the words of one
document, and returns as many words with a mask of those that are no longer its own. One that asks
the model takes numbers of words and a `TextOracle` instead.
"""

from robustbench_elliptical.attacks.text.adversarial_swap import adversarial_swap
from robustbench_elliptical.attacks.text.char_noise import char_noise
from robustbench_elliptical.attacks.text.checks import check_rate
from robustbench_elliptical.attacks.text.contaminated import (
    Contaminated,
    ContaminatedTokens,
    Swaps,
)
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.objective import Objective
from robustbench_elliptical.attacks.text.oracle import NonFiniteLossError, TextOracle
from robustbench_elliptical.attacks.text.registry import (
    TEXT_ATTACKS,
    TextChoice,
    TextEntry,
    parse_text_attack,
)
from robustbench_elliptical.attacks.text.textattack_swap import textattack_swap
from robustbench_elliptical.attacks.text.word_swap import word_swap, word_swap_tokens

__all__ = [
    "TEXT_ATTACKS",
    "Contaminated",
    "ContaminatedTokens",
    "Lexicon",
    "NonFiniteLossError",
    "Objective",
    "Swaps",
    "TextChoice",
    "TextEntry",
    "TextOracle",
    "adversarial_swap",
    "char_noise",
    "check_rate",
    "parse_text_attack",
    "textattack_swap",
    "word_swap",
    "word_swap_tokens",
]

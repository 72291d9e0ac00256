from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from robustbench_elliptical.attacks.text import word_swap, word_swap_tokens
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK, Vocabulary

VOCABULARY = Vocabulary(["the", ",", "of", EOS, "x1", UNK, "y2"], [50, 40, 30, 9, 15, 7, 5])
NEVER = Vocabulary(["the", "of", "x1", EOS, UNK], [1, 0, 0, 1, 1])


def drawn(word, count=20_000):
    result = word_swap([word] * count, 1, "d", VOCABULARY, replacement="random-word")
    return Counter(result.words)


@pytest.mark.parametrize("word", ["the", "of", "x1", "y2", "outside"])
def test_words_come_by_their_frequency_but_never_the_own_one(word):
    chances = {"the": 50, "of": 30, "x1": 15, "y2": 5}
    chances.pop(word, None)
    seen = drawn(word)
    assert set(seen) == set(chances)
    scale = seen.total() / sum(chances.values())
    expected = [chance * scale for chance in chances.values()]
    assert chisquare([seen[each] for each in chances], expected).pvalue > 1e-3


def test_words_that_were_never_seen_are_never_drawn():
    vocabulary = Vocabulary(["the", "zero", "of", EOS, UNK], [3, 0, 2, 1, 1])
    result = word_swap(["zero"] * 500, 1, "d", vocabulary, replacement="random-word")
    assert set(result.words) == {"the", "of"}


def test_a_vocabulary_of_one_word_is_refused():
    expected = r"needs a vocabulary with the counts of at least two words; use replacement=AAA or"
    with pytest.raises(UsageError, match=expected):
        word_swap(["of"], 1, "d", NEVER, replacement="random-word")
    with pytest.raises(UsageError, match=expected):
        word_swap_tokens(
            np.array([1]), 1, "d", Vocabulary([EOS, UNK, "a", "b"]), replacement="random-word"
        )

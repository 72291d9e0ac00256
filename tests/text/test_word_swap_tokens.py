import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.attacks.text import word_swap, word_swap_tokens
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK, Vocabulary


@given(
    st.data(),
    st.floats(0, 1),
    st.sampled_from(["AAA", "random-word", "unk"]),
    st.sampled_from(["exact-rate", "paper"]),
)
def test_tokens_and_words_are_swapped_alike(vocabulary, data, rate, replacement, mode):
    words = data.draw(st.lists(st.sampled_from(vocabulary.words), max_size=60))
    settings = {"replacement": replacement, "mode": mode, "seed": 3}
    by_word = word_swap(words, rate, "d", vocabulary, **settings)
    tokens = vocabulary.encode(words)
    by_token = word_swap_tokens(tokens, rate, "d", vocabulary, **settings)
    assert vocabulary.decode(by_token.tokens) == list(by_word.words)
    assert np.array_equal(by_token.swapped, by_word.swapped)
    assert np.array_equal(by_token.eligible, by_word.eligible)
    assert np.array_equal(by_token.line_ends, by_word.line_ends)
    assert by_token.tokens.dtype == np.int64
    assert np.array_equal(tokens, vocabulary.encode(words))


def test_a_generic_word_outside_the_vocabulary_is_unk():
    vocabulary = Vocabulary([EOS, UNK, "house"], [1, 1, 1])
    result = word_swap_tokens(np.array([2, 1, 0], dtype=np.int32), 1, "d", vocabulary)
    assert result.tokens.tolist() == [1, 1, 0]
    assert result.swapped.tolist() == [True, False, False]


def test_no_tokens_no_swaps(vocabulary):
    result = word_swap_tokens(np.array([], dtype=np.int64), 1, "d", vocabulary)
    assert len(result.tokens) == 0


def test_tokens_are_numbers_of_the_vocabulary(vocabulary):
    last = len(vocabulary) - 1
    with pytest.raises(UsageError, match=rf"tokens must lie in 0\.\.{last}, .*got 0 to {last + 1}"):
        word_swap_tokens(np.array([0, last + 1]), 0.1, "d", vocabulary)
    with pytest.raises(UsageError, match="got -1 to 2"):
        word_swap_tokens(np.array([-1, 2]), 0.1, "d", vocabulary)
    with pytest.raises(UsageError, match=r"whole numbers of shape \(words,\), got float64"):
        word_swap_tokens(np.array([0.5]), 0.1, "d", vocabulary)
    with pytest.raises(UsageError, match=r"got int64 of shape \(1, 1\)"):
        word_swap_tokens(np.array([[1]]), 0.1, "d", vocabulary)

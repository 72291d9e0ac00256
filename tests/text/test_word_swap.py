import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.attacks.text import word_swap
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK

LINE = "alpha beta the The 1890 don't AAA U.S. = @-@ @,@ @.@ , . -- $"
TOKENS = [*LINE.split(), EOS, UNK]
DOCUMENTS = st.lists(st.sampled_from(TOKENS), max_size=60)
RATES = st.floats(0, 1)
REPLACEMENTS = ["AAA", "random-word", "unk"]
MODES = ["exact-rate", "paper"]


@pytest.mark.parametrize("rate", [0, 0.01, 0.015, 0.025, 0.05, 0.1, 0.5, 1])
@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_the_rate_is_exact(long_document, vocabulary, protected, rate, replacement):
    result = word_swap(long_document, rate, "d", vocabulary, replacement=replacement)
    own = {"AAA"} if replacement == "AAA" else set()
    eligible = [word not in protected | own for word in long_document]
    count = math.floor(rate * sum(eligible) + 0.5)
    assert result.eligible.tolist() == eligible
    assert result.swapped.sum() == count
    assert result.realised_rate == count / sum(eligible)
    assert result.realised_share == count / sum(word != EOS for word in long_document)
    changed = [a != b for a, b in zip(long_document, result.words, strict=True)]
    assert changed == result.swapped.tolist()


def test_the_replacement_stands_where_the_mask_says(long_document):
    for replacement, word in (("AAA", "AAA"), ("unk", UNK)):
        result = word_swap(long_document, 0.2, "d", replacement=replacement)
        assert {result.words[place] for place in np.flatnonzero(result.swapped)} == {word}


@given(DOCUMENTS, RATES, st.sampled_from(REPLACEMENTS), st.sampled_from(MODES), st.text())
def test_protected_tokens_stay_and_so_does_the_length(
    vocabulary, protected, words, rate, replacement, mode, name
):
    result = word_swap(words, rate, name, vocabulary, replacement=replacement, mode=mode)
    assert len(result.words) == len(words) == len(result.swapped) == len(result.eligible)
    for old, new, swapped in zip(words, result.words, result.swapped, strict=True):
        assert (old != new) == swapped
        assert not (swapped and old in protected)
        assert new not in {EOS} - {old}
    assert not (result.swapped & ~result.eligible).any()
    assert result.line_ends.tolist() == [word == EOS for word in words]


@given(DOCUMENTS, RATES, RATES, st.sampled_from(REPLACEMENTS), st.sampled_from(MODES))
def test_swaps_are_nested_over_rates(vocabulary, words, rate, other, replacement, mode):
    low, high = (
        word_swap(words, each, "d", vocabulary, replacement=replacement, mode=mode)
        for each in sorted((rate, other))
    )
    assert not (low.swapped & ~high.swapped).any()
    for place in np.flatnonzero(low.swapped):
        assert low.words[place] == high.words[place]


def test_document_and_seed_decide_and_nothing_else(long_document):
    first = word_swap(long_document, 0.1, "d").swapped
    assert np.array_equal(first, word_swap(tuple(long_document), 0.1, "d").swapped)
    assert not np.array_equal(first, word_swap(long_document, 0.1, "e").swapped)
    assert not np.array_equal(first, word_swap(long_document, 0.1, "d", seed=1).swapped)
    unk = word_swap(long_document, 0.1, "d", replacement="unk").swapped
    assert (first & unk).sum() > 0.9 * first.sum()


def test_every_position_is_as_likely_as_another():
    words = ["word"] * 40
    hits = sum(
        word_swap(words, 0.25, f"document {number}").swapped.astype(int) for number in range(800)
    )
    expected = 800 * 0.25
    assert hits.sum() == 800 * 10
    statistic = ((hits - expected) ** 2 / expected).sum()
    assert statistic < 62  # Below the 99 % point of 39 degrees of freedom.


def test_no_words_no_swaps():
    for words in ([], [EOS, "=", UNK, ","]):
        for mode in MODES:
            result = word_swap(words, 1, "d", mode=mode)
            assert result.words == tuple(words)
            assert result.realised_rate == 0
    assert word_swap([EOS], 1, "d").realised_share == 0


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, math.inf])
def test_rate_lies_between_0_and_1(rate):
    with pytest.raises(UsageError, match="rate must be a number between 0 and 1, got "):
        word_swap(["a"], rate, "d")


def test_bad_arguments_are_refused(vocabulary):
    with pytest.raises(UsageError, match=r"got 2.5: did you mean 0\.025\?"):
        word_swap(["a"], 2.5, "d")
    with pytest.raises(UsageError, match="words must be a list of words, got one text: split it"):
        word_swap("a b c", 0.1, "d")
    with pytest.raises(UsageError, match="words must be strings, got 3"):
        word_swap(["a", 3], 0.1, "d")
    with pytest.raises(UsageError, match="seed must be a whole number of 0 or more, got -1"):
        word_swap(["a"], 0.1, "d", seed=-1)
    with pytest.raises(UsageError, match="attack word-swap: replacement: input should be 'AAA', "):
        word_swap(["a"], 0.1, "d", replacement="BBB")
    with pytest.raises(UsageError, match="attack word-swap: mode: input should be 'exact-rate' or"):
        word_swap(["a"], 0.1, "d", mode="exact")
    with pytest.raises(UsageError, match="random-word needs a vocabulary to draw from; use"):
        word_swap(["a"], 1, "d", replacement="random-word")

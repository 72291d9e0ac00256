from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK, Vocabulary

TEXTS = st.lists(st.lists(st.sampled_from([*"abcdefgh", EOS, UNK]), max_size=30), max_size=5)


@given(TEXTS, st.integers(1, 4))
def test_counting_is_that_of_a_counter(texts, least):
    seen = Counter(word for words in texts for word in words)
    vocabulary = Vocabulary.count(texts, least)
    kept = {
        word: count for word, count in seen.items() if count >= least and word not in (EOS, UNK)
    }
    counts = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
    assert counts == kept | {EOS: seen[EOS], UNK: seen.total() - seen[EOS] - sum(kept.values())}
    assert int(vocabulary.counts.sum()) == seen.total()
    pairs = [(-count, word) for word, count in counts.items()]
    assert pairs == sorted(pairs)


def test_words_are_numbered_in_order_and_unknown_ones_are_unk():
    vocabulary = Vocabulary.count([["b", "a", "b", "c", "a", EOS], ["c", "c", EOS, "rare"]], 2)
    assert vocabulary.words == ("c", EOS, "a", "b", UNK)
    assert vocabulary.counts.tolist() == [3, 2, 2, 2, 1]
    tokens = vocabulary.encode(["a", "rare", "never", EOS])
    assert tokens.dtype == np.int64
    assert tokens.tolist() == [2, vocabulary.unk, vocabulary.unk, vocabulary.eos]
    assert vocabulary.decode(tokens) == ["a", UNK, UNK, EOS]
    assert "a" in vocabulary
    assert "rare" not in vocabulary
    with pytest.raises(IndexError, match=r"0\.\.4"):
        vocabulary.decode(np.array([5]))


def test_a_saved_vocabulary_comes_back(tmp_path):
    vocabulary = Vocabulary.count([["naïve", "b", "b", "=", "@-@", EOS]])
    path = tmp_path / "vocabulary.txt"
    vocabulary.save(path)
    assert path.read_bytes().decode() == "b 2\n<eos> 1\n= 1\n@-@ 1\nnaïve 1\n<unk> 0\n"
    again = Vocabulary.load(path)
    assert again.words == vocabulary.words
    assert np.array_equal(again.counts, vocabulary.counts)


def test_a_list_without_counts_is_a_vocabulary_too(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("<eos>\nthe\n<unk>\n")
    vocabulary = Vocabulary.load(path)
    assert vocabulary.words == (EOS, "the", UNK)
    assert vocabulary.counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the word <eos> is missing; add it"),
        ("<eos> 1\n", "the word <unk> is missing"),
        ("<eos> 1\n<unk>\n", "line 2: must be a word and its count, .* got '<unk>'"),
        ("<eos> 1\n<unk> -3\n", "line 2: must be a word and its count"),
        ("<eos> 1 2\n", "line 1: must be a word and its count"),
        ("<eos> 1\n\n<unk> 1\n", "line 2: must be"),
        ("<eos> 1\n<unk> 1\nthe 1\nthe 2\n", "words must be unique, got 'the' twice"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, content, problem):
    path = tmp_path / "vocabulary.txt"
    path.write_text(content)
    with pytest.raises(UsageError, match=f"vocabulary .*vocabulary.txt.*{problem}"):
        Vocabulary.load(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"none.txt does not exist; give the vocabulary that lies"):
        Vocabulary.load(tmp_path / "none.txt")


def test_words_must_be_words():
    with pytest.raises(UsageError, match=r"can't be empty or hold spaces, got 'two words'"):
        Vocabulary([EOS, UNK, "two words"])
    with pytest.raises(UsageError, match="can't be empty or hold spaces, got ''"):
        Vocabulary([EOS, UNK, ""])
    with pytest.raises(UsageError, match="every word needs a count, got 1 counts for 2 words"):
        Vocabulary([EOS, UNK], [1])
    with pytest.raises(UsageError, match="min_count must be at least 1, got 0"):
        Vocabulary.count([["a"]], 0)


def test_weights_must_be_of_the_same_vocabulary():
    vocabulary = Vocabulary([EOS, UNK, "the"])
    vocabulary.check_fits(3, "model tiny")
    with pytest.raises(
        UsageError,
        match="model tiny: the weights are for 4 words but the vocabulary has 3; give the",
    ):
        vocabulary.check_fits(4, "model tiny")

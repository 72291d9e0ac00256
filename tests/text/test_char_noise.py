import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.attacks.text import char_noise, word_swap
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK

KINDS = ["delete", "insert", "substitute", "swap-neighbours", "keyboard", "homoglyph"]
ADJACENT = (
    "qw we er rt ty yu ui io op as sd df fg gh hj jk kl zx xc cv vb bn nm "
    "qa wa ws es ed rd rf tf tg yg yh uh uj ij ik ok ol pl "
    "az sz sx dx dc fc fv gv gb hb hn jn jm km"
)
WORDS = st.lists(st.text(st.characters(categories=["L", "Nd", "P"]), min_size=1), max_size=20)


def distance(one, two):
    """Levenshtein's distance, by the textbook recurrence."""
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(two, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def transposed(one, two):
    """Whether two words differ by two characters side by side that changed places."""
    places = [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    return (
        len(places) == 2
        and places[1] == places[0] + 1
        and one[places[0]] == two[places[1]]
        and one[places[1]] == two[places[0]]
    )


@given(WORDS, st.sampled_from(KINDS), st.integers(0, 5))
def test_every_edit_is_one_edit(words, kind, seed):
    result = char_noise(words, 1, "d", kind=kind, seed=seed)
    assert len(result.words) == len(words)
    for old, new, swapped in zip(words, result.words, result.swapped, strict=True):
        assert (old != new) == swapped
        if not swapped:
            continue
        if kind == "swap-neighbours":
            assert transposed(old, new)
        else:
            assert distance(old, new) == 1
        assert len(new) - len(old) == {"delete": -1, "insert": 1}.get(kind, 0)


def changes(kind, word, count=300):
    result = char_noise([word] * count, 1, "d", kind=kind)
    assert result.swapped.all()
    return set(result.words)


def test_edits_reach_every_place_and_letter():
    assert changes("delete", "abc") == {"bc", "ac", "ab"}
    assert changes("swap-neighbours", "abbc") == {"babc", "abcb"}
    assert changes("keyboard", "A") == {"Q", "W", "S", "Z"}
    assert len(changes("substitute", "b", 1000)) == 25
    assert len(changes("insert", "b", 2000)) == 51


def test_keyboard_slips_hit_a_touching_key_in_the_same_case():
    for letter in "abcdefghijklmnopqrstuvwxyz":
        for case in (str.lower, str.upper):
            for new in changes("keyboard", case(letter), 100):
                assert new == case(new)
                pair = (letter + new).lower()
                assert {pair, pair[::-1]} & set(ADJACENT.split())


def test_homoglyphs_are_cyrillic_letters():
    for new in changes("homoglyph", "aceijopsxyABCEHIJKMOPSTX", 500):
        (odd,) = [letter for letter in new if not letter.isascii()]
        assert unicodedata.name(odd).startswith("CYRILLIC ")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("delete", "a"),
        ("swap-neighbours", "aaa"),
        ("keyboard", "1890"),
        ("homoglyph", "dwzQ"),
        *[(kind, word) for kind in KINDS for word in (EOS, UNK, "=", "@-@", ",", "--")],
    ],
)
def test_words_that_cannot_be_edited_are_not_eligible(kind, word):
    result = char_noise([word, "house"], 1, "d", kind=kind)
    assert result.eligible.tolist() == [False, True]
    assert result.swapped.tolist() == [False, True]
    assert result.words[0] == word
    assert result.realised_rate == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_is_exact_and_edits_are_nested(long_document, kind):
    low = char_noise(long_document, 0.025, "d", kind=kind)
    high = char_noise(long_document, 0.1, "d", kind=kind)
    assert high.swapped.sum() == int(0.1 * high.eligible.sum() + 0.5)
    assert not (low.swapped & ~high.swapped).any()
    for place in low.swapped.nonzero()[0]:
        assert low.words[place] == high.words[place]


def test_the_same_words_as_word_swap_are_hit(long_document):
    edited = char_noise(long_document, 0.1, "d", kind="insert").swapped
    swapped = word_swap(long_document, 0.1, "d", replacement="unk").swapped
    assert (edited == swapped).all()


def test_bad_arguments_are_refused():
    with pytest.raises(UsageError, match="attack char-noise: kind: input should be 'delete', 'ins"):
        char_noise(["a"], 0.1, "d", kind="typo")
    with pytest.raises(UsageError, match="rate must be a number between 0 and 1, got -1"):
        char_noise(["a"], -1, "d")
    with pytest.raises(UsageError, match="got one text: split it"):
        char_noise("a", 0.1, "d")

import pytest

from robustbench_elliptical.attacks.text import word_swap
from robustbench_elliptical.attacks.text.traits import stop_words, traits_of
from robustbench_elliptical.data.text import EOS, UNK


def swaps_per_line(text, rate, name="d"):
    """Return the numbers of swaps and of eligible words in each line."""
    words = [word for line in text.split("\n") for word in [*line.split(), EOS]]
    result = word_swap(words, rate, name, mode="paper")
    swaps, eligible = [0], [0]
    for place, word in enumerate(words):
        if word == EOS:
            swaps.append(0)
            eligible.append(0)
        swaps[-1] += int(result.swapped[place])
        eligible[-1] += int(result.eligible[place])
    return swaps[:-1], eligible[:-1]


def test_at_least_one_word_of_each_line_that_has_words():
    text = "= Title =\n\n, . --\n" + "word " * 199 + "\n" + "word " * 200
    for rate, expected in (
        (0.015, [1, 0, 0, 2, 3]),
        (0.025, [1, 0, 0, 4, 5]),
        (0.1, [1, 0, 0, 19, 20]),
        (1, [1, 0, 0, 199, 200]),
        (0, [0, 0, 0, 0, 0]),
    ):
        assert swaps_per_line(text, rate)[0] == expected


def test_stop_words_count_but_are_not_swapped_and_case_matters():
    swaps, eligible = swaps_per_line("the of and The House", 1)
    assert (swaps, eligible) == ([2], [2])
    swaps, eligible = swaps_per_line("the house " * 50, 0.1)
    assert (swaps, eligible) == ([10], [50])
    swaps, eligible = swaps_per_line("the of and", 0.5)
    assert (swaps, eligible) == ([0], [0])


def test_numbers_and_fragments_are_words():
    swaps, eligible = swaps_per_line("1890 @,@ 000 N.B 's don't x'", 1)
    assert (swaps, eligible) == ([4], [4])  # 's is "s" and don't "don't": both are stop words.


def test_unknown_words_count_but_are_not_swapped():
    swaps, eligible = swaps_per_line(f"{UNK} {UNK} {UNK} house", 0.5)
    assert (swaps, eligible) == ([1], [1])
    swaps, _ = swaps_per_line("house " * 50 + f"{UNK} " * 50, 0.1)
    assert swaps == [10]


def test_a_last_line_without_an_end_counts():
    result = word_swap(["a1", EOS, "b1", "c1"], 0.01, "d", mode="paper")
    assert result.swapped.tolist()[:2] == [True, False]
    assert result.swapped.sum() == 2


@pytest.mark.parametrize(
    ("token", "pieces"),
    [
        ("house", 1),
        ("N.B", 2),
        ("'s", 1),
        ("don't", 1),
        ("a-b_c*d@e", 1),
        ("--", 0),
        ("@-@", 0),
        ("1.5", 2),
        (UNK, 1),
        (EOS, 0),
        ("…", 0),
        ("naïve", 1),
        ("_", 0),
    ],
)
def test_words_within_a_token(token, pieces):
    assert traits_of([token]).pieces.tolist() == [pieces]


def test_the_stop_words():
    words = stop_words()
    assert len(words) == 179
    assert all(word == word.lower() for word in words)
    assert {"the", "i", "don't", "wouldn't", "s", "ma"} <= words
    assert not {"The", "would", "house", "1890"} & words

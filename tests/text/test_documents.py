import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.data.text import EOS, UNK, Document
from robustbench_elliptical.data.text.tokenization import (
    ASCII_WORDS,
    UNICODE_WORDS,
    split_document,
)

LINE = "The Union's $3,500 (or 5%) isn't Kansas-Nebraska; see U.S. 1890_a."


def test_words_are_split_from_punctuation():
    document = split_document("d", [LINE, "", "Go on."], ASCII_WORDS)
    assert " ".join(document.words) == (
        "The Union's $ 3 , 500 ( or 5 % ) isn't Kansas - Nebraska ; see U . S . 1890 _ a . <eos> "
        "<eos> Go on . <eos>"
    )
    assert document.text() == f"{LINE}\n\nGo on.\n"


def test_letters_of_any_script_stay_together_in_plain_text():
    document = split_document("d", ["L'été à Athènes: Αθήνα, 12 août"], UNICODE_WORDS)
    assert " ".join(document.words) == "L'été à Athènes : Αθήνα , 12 août <eos>"
    ascii_only = split_document("d", ["été"], ASCII_WORDS)
    assert ascii_only.words == ("é", "t", "é", EOS)


def test_text_that_is_split_already_stays_as_it_is():
    line = "= Title = <unk> a @-@ b 1 @,@ 000 @.@ 5 , don't ."
    document = split_document("d", [line], UNICODE_WORDS)
    assert document.words == (*line.split(), EOS)
    assert document.text() == f"{line}\n"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))))
def test_splitting_loses_white_space_only(lines):
    for pattern in (ASCII_WORDS, UNICODE_WORDS):
        document = split_document("d", lines, pattern)
        assert len(document.glued) == len(document.words)
        assert all(len(word.split()) == 1 for word in document.words)
        written = [" ".join(line.split()) for line in document.text().split("\n")]
        assert written == [*(" ".join(line.split()) for line in lines), ""]


def test_other_words_take_the_places_of_the_documents():
    document = split_document("d", ["My country, too."], ASCII_WORDS)
    words = ["My", "AAA", ",", UNK, ".", EOS]
    assert document.text(words) == "My AAA, <unk>.\n"
    assert Document("d", ("one", "two", EOS)).text(["1", "2", EOS]) == "1 2\n"
    with pytest.raises(ValueError, match="d has 6 words, got 1"):
        document.text(["AAA"])

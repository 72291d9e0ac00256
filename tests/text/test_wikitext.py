from collections import Counter

import numpy as np
import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK, load_corpus, load_text

ARTICLES = """
 = Robert <unk> = 

 Robert <unk> is an English film , television and theatre actor . 
 = = Career = = 

 He won 1 @,@ 000 in 2001 . 

 = x = y = 

 An equation 's title . 
 = = = Works = = = 
 = 
 = = 
"""  # noqa: W291 - as the files have it


@pytest.fixture
def folder(tmp_path):
    for split, text in (("train", ARTICLES * 2), ("valid", ARTICLES), ("test", ARTICLES)):
        (tmp_path / f"wiki.{split}.tokens").write_text(text)
    return tmp_path


def test_articles_begin_at_top_level_titles(folder):
    documents = list(load_text(f"wikitext:{folder}", "test"))
    assert [each.id for each in documents] == ["wikitext/test/00000", "wikitext/test/00001"]
    assert documents[0].words[:6] == (EOS, "=", "Robert", UNK, "=", EOS)
    assert documents[1].words[:7] == ("=", "x", "=", "y", "=", EOS, EOS)
    train = [each.id for each in load_text(f"wikitext:{folder}", "train")]
    assert train == [f"wikitext/train/{number:05d}" for number in range(4)]


def test_every_line_ends_with_eos_and_nothing_is_lost(folder):
    words = [word for each in load_text(f"wikitext:{folder}") for word in each.words]
    expected = [word for line in ARTICLES[:-1].split("\n") for word in [*line.split(), EOS]]
    assert words == expected


def test_the_vocabulary_is_every_word_of_the_training_file_and_eos(folder):
    (folder / "wiki.test.tokens").write_text("unseen words\n")
    corpus = load_corpus(f"wikitext:{folder}")
    vocabulary = corpus.vocabulary()
    seen = Counter((ARTICLES * 2).split()) + Counter({EOS: (ARTICLES * 2).count("\n")})
    assert len(vocabulary) == len(set(ARTICLES.split())) + 1 == len(seen)
    assert dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)) == seen
    assert "unseen" not in vocabulary


@pytest.mark.parametrize("name", ["{}.txt", "wiki.{}.txt"])
def test_names_of_older_mirrors(tmp_path, name):
    (tmp_path / name.format("test")).write_text(ARTICLES)
    assert len(list(load_text(f"wikitext:{tmp_path}"))) == 2


def test_tokens_of_a_part_in_one_array(folder):
    corpus = load_corpus(f"wikitext:{folder}")
    vocabulary = corpus.vocabulary()
    part = corpus.split("valid")
    tokens = part.tokens(vocabulary)
    assert tokens.dtype == np.int64
    assert vocabulary.decode(tokens) == [word for each in part for word in each.words]


def test_carriage_returns_and_a_byte_order_mark_are_no_words(tmp_path):
    (tmp_path / "test.txt").write_bytes(b"\xef\xbb\xbf = A = \r\n b \r\n")
    (document,) = load_text(f"wikitext:{tmp_path}")
    assert document.words == ("=", "A", "=", EOS, "b", EOS)


def test_the_character_level_release_is_refused(tmp_path):
    (tmp_path / "wiki.test.raw").write_text(ARTICLES)
    with pytest.raises(
        UsageError,
        match=r"wiki\.test\.raw is the character-level release, .*give the folder that holds",
    ):
        load_text(f"wikitext:{tmp_path}")


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"wiki\.test\.tokens \(or test\.txt\) is missing from"):
        load_text(f"wikitext:{tmp_path}")
    with pytest.raises(UsageError, match=r"nowhere does not exist; give the folder that holds"):
        load_text(f"wikitext:{tmp_path}/nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file is not a folder"):
        load_text(f"wikitext:{tmp_path}/file")

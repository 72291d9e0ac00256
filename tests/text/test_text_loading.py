import pytest

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.data.text import (
    EOS,
    TEXT,
    UNK,
    TextCorpus,
    TextSource,
    Vocabulary,
    load_corpus,
    load_text,
)


def test_a_text_file_is_one_document(tmp_path):
    path = tmp_path / "speech.txt"
    path.write_text("Dear all,\n\ngood night.", encoding="utf-8")
    for split in ("train", "valid", "test"):
        part = load_text(f"text:{path}", split)
        (document,) = part
        assert document.id == "text/speech"
        assert " ".join(document.words) == "Dear all , <eos> <eos> good night . <eos>"
        assert part.name == f"text:{path} ({split})"
    assert document.text() == "Dear all,\n\ngood night.\n"


def test_unknown_name_gets_suggestions_and_the_ways_to_write_it():
    with pytest.raises(UnknownNameError, match=r"did you mean 'sotu'\? Write one of sotu, text:"):
        load_text("sotuu")
    with pytest.raises(UnknownNameError, match=r"unknown text '/some/file'.*wikitext:DIR"):
        load_text("/some/file")


@pytest.mark.parametrize(
    ("spec", "form"),
    [
        ("text", "text:FILE"),
        ("text:", "text:FILE"),
        ("wikitext: ", "wikitext:DIR"),
        ("sotu:", "sotu"),
        ("sotu:/here", "sotu"),
    ],
)
def test_forms_that_lack_a_place_or_have_one_too_many_are_refused(spec, form):
    with pytest.raises(UsageError, match=f"text must be written {form}, got {spec!r}"):
        load_corpus(spec)


def test_split_is_one_of_three():
    with pytest.raises(UsageError, match="split must be train, valid or test, got 'dev'"):
        load_text("sotu", "dev")


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf"])
def test_empty_text_is_refused(tmp_path, content):
    path = tmp_path / "empty.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"empty\.txt \(test\) has no words; give a file"):
        load_text(f"text:{path}")
    with pytest.raises(UsageError, match=r"empty\.txt \(train\) has no words"):
        load_corpus(f"text:{path}").vocabulary()


def test_text_of_unknown_words_only_is_refused(tmp_path):
    path = tmp_path / "foreign.txt"
    path.write_text("<unk> <unk>\n<unk>")
    with pytest.raises(
        UsageError, match="every word is <unk>; the file was written with another vocabulary"
    ):
        load_text(f"text:{path}")
    path.write_text("Sehr geehrte Damen und Herren")
    vocabulary = Vocabulary([EOS, UNK, "dear", "all"])
    expected = r"every word is <unk>; it is in another language than the vocabulary, or split"
    with pytest.raises(UsageError, match=expected):
        load_text(f"text:{path}", vocabulary=vocabulary)
    with pytest.raises(UsageError, match=expected):
        load_text(f"text:{path}").tokens(vocabulary)
    path.write_text("Dear all")
    part = load_text(f"text:{path}", vocabulary=vocabulary)
    assert part.tokens(vocabulary).tolist() == [1, 3, 0]


def test_other_encodings_are_refused(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("Liberté\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin\.txt is not UTF-8 text: .*; convert it, for ex"):
        load_text(f"text:{path}")
    path.write_text("Ω\n", encoding="utf-16")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load_text(f"text:{path}")


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("a\0b", "null|does not exist"),
        ("~no-such-user-here/x", "no home folder"),
        ("x" * 5000, "File name too long"),
        ("/dev/null/x", "does not exist|Not a directory"),
        (".", "is not a (file|folder)|is missing"),
    ],
)
@pytest.mark.parametrize("name", ["text", "wikitext"])
def test_impossible_paths_are_refused(name, place, problem):
    with pytest.raises(UsageError, match=problem):
        load_text(f"{name}:{place}")


def test_a_forbidden_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "mine.txt"
    path.touch()

    def forbid(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbid)
    with pytest.raises(UsageError, match=r"cannot read .*mine.txt: Permission denied"):
        load_text(f"text:{path}")


def test_a_new_corpus_is_a_registration(monkeypatch):
    monkeypatch.setattr(TEXT, "_entries", dict(TEXT._entries))
    places = []

    class Mine(TextCorpus):
        def documents(self, split):
            raise NotImplementedError

    def load(place):
        places.append(str(place))
        return Mine("mine", 1)

    TEXT.add("mine", TextSource("mine:PLACE", load, "mine"))
    load_corpus("mine:/here:there")
    assert places == ["/here:there"]

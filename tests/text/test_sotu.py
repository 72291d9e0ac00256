import hashlib
import importlib.util
import json
import lzma
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from robustbench_elliptical.data.text import EOS, UNK, load_corpus

FILE = Path(str(files("robustbench_elliptical.data"))) / "embedded" / "sotu.xz"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_embedded_sotu.py"


@pytest.fixture(scope="module")
def documents():
    corpus = load_corpus("sotu")
    return {split: list(corpus.split(split)) for split in ("train", "valid", "test")}


@pytest.fixture(scope="module")
def addresses():
    with lzma.open(FILE, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def test_the_file_is_the_one_that_models_were_trained_on():
    content = FILE.read_bytes()
    assert len(content) == 2_482_348
    digest = "97b2d4719366d44d32a344459d2d92418ce5d12252a7a4a6721e42c8e76e6f76"
    assert hashlib.sha256(content).hexdigest() == digest


def test_every_address_is_in_one_part(documents, addresses):
    assert {split: len(each) for split, each in documents.items()} == {
        "train": 186,
        "valid": 24,
        "test": 23,
    }
    names = [f"sotu/{address['id']}" for address in addresses]
    assert len(names) == 233
    assert [each.id for each in documents["valid"]] == names[::10]
    assert [each.id for each in documents["test"]] == names[5::10]
    every = {each.id for split in documents.values() for each in split}
    assert every == set(names)


def test_the_whole_corpus_has_the_stated_numbers(documents):
    counts = Counter(word for split in documents.values() for each in split for word in each.words)
    assert counts.pop(EOS) == 233
    assert counts.total() == 2_000_768
    assert len(counts) == 29_768
    assert sum(count >= 3 for count in counts.values()) == 16_942


def test_the_text_can_be_written_again(documents, addresses):
    raw = {f"sotu/{address['id']}": address["text"] for address in addresses}
    for document in documents["test"]:
        assert document.text() == " ".join(raw[document.id].split()) + "\n"


def test_the_vocabulary_is_that_of_the_training_part(documents):
    vocabulary = load_corpus("sotu").vocabulary()
    seen = Counter(word for each in documents["train"] for word in each.words)
    assert set(vocabulary.words) == {
        UNK,
        *(word for word, count in seen.items() if count >= 3 or word == EOS),
    }
    assert len(vocabulary) == 15_376
    assert int(vocabulary.counts.sum()) == seen.total() == 1_571_530
    assert vocabulary.words[:3] == ("the", "of", ",")
    assert "AAA" not in vocabulary


def test_the_script_makes_the_file_of_a_folder(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("make_embedded_sotu", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "1791_b.txt").write_text("Two, “quoted”. \n", encoding="utf-8")
    (folder / "1790_a.txt").write_text("One.\n", encoding="utf-8")
    (folder / "1790_a.json").write_text("{}")
    script.main(folder, tmp_path / "one.xz")
    script.main(folder, tmp_path / "two.xz")
    content = (tmp_path / "one.xz").read_bytes()
    assert content == (tmp_path / "two.xz").read_bytes()
    assert hashlib.sha256(content).hexdigest() in capsys.readouterr().out
    assert [json.loads(line) for line in lzma.decompress(content).decode().splitlines()] == [
        {"id": "1790_a", "text": "One."},
        {"id": "1791_b", "text": "Two, “quoted”."},
    ]
    with pytest.raises(SystemExit, match=r"holds no \*\.txt"):
        script.packed(tmp_path / "nowhere")

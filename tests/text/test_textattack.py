"""The attack textattack against a stand-in for the library, which is slow to import."""

import importlib.util
import os

import numpy as np
import pytest

from robustbench_elliptical.attacks.text import parse_text_attack, textattack_swap, word_swap
from robustbench_elliptical.attacks.text.textattack_process import textattack_process
from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.data.text import EOS, UNK

TRANSFORMATIONS = """
import os, random, socket
import numpy as np
import nltk_path

class WordSwap:
    pass

class WordSwapUpper(WordSwap):
    def new(self, word):
        return word.upper()

class WordSwapDraw(WordSwap):
    def new(self, word):
        return f"{word}{random.randrange(10**6)}{np.random.randint(10**6)}"

class WordSwapOdd(WordSwap):
    def new(self, word):
        return {"one": "two words", "two": "", "three": "<eos>", "four": "four"}.get(word, "new")

class WordSwapBroken(WordSwap):
    def __init__(self):
        raise LookupError("***\\n\\n  Resource is missing.\\n  Try harder")

class WordSwapOnline(WordSwap):
    def new(self, word):
        socket.create_connection(("127.0.0.1", 9))

class WordSwapCrash(WordSwap):
    def new(self, word):
        os.write(2, b"out of memory\\n")
        os._exit(3)

class WordSwapEnvironment(WordSwap):
    def new(self, word):
        return nltk_path.found()

class SentenceSwap:
    pass
"""
AUGMENTATION = """
class Augmenter:
    def __init__(self, transformation, pct_words_to_swap):
        assert pct_words_to_swap == 1.0
        self.transformation = transformation

    def augment(self, text):
        print("a library that prints")
        return [self.transformation.new(text)]
"""
NLTK_PATH = """
import os, pathlib
def found():
    home = pathlib.Path.home()
    words = pathlib.Path(os.environ["NLTK_DATA"], "corpora/stopwords/english").read_text().split()
    marker = pathlib.Path(os.environ["TA_CACHE_DIR"], "post_install_check_3").exists()
    inside = os.environ["NLTK_DATA"].startswith(str(home))
    return f"{len(words)}-{marker}-{inside}-{os.environ['HF_HUB_OFFLINE']}"
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Put the stand-in on the path and end its process afterwards."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "textattack").mkdir()
    (folder / "textattack" / "__init__.py").touch()
    (folder / "textattack" / "transformations.py").write_text(TRANSFORMATIONS)
    (folder / "textattack" / "augmentation.py").write_text(AUGMENTATION)
    (folder / "nltk_path.py").write_text(NLTK_PATH)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        textattack_process.cache_clear()
        yield folder
        textattack_process().close()
        textattack_process.cache_clear()


def test_chosen_words_are_swapped(library, long_document):
    before = dict(os.environ)
    attack = parse_text_attack("textattack:WordSwapUpper,rate=0.1")
    assert attack.label == "textattack(transformation=WordSwapUpper)"
    words = [word.lower() for word in long_document]
    result = attack.run(words, document_id="d")
    ours = word_swap(words, 0.1, "d", replacement="unk")
    assert np.array_equal(result.eligible, ours.eligible)
    for old, new, chosen in zip(words, result.words, ours.swapped, strict=True):
        assert new == (old.upper() if chosen else old)
    assert os.environ == before


def test_draws_depend_on_seed_document_and_position_alone(library):
    words = [f"w{number}" for number in range(50)]

    def run(rate=0.5, name="d", seed=0):
        return textattack_swap(words, rate, name, transformation="WordSwapDraw", seed=seed)

    first = run()
    assert run().words == first.words
    assert len(set(first.words)) == 50
    low = run(rate=0.2)
    assert low.swapped.sum() == 10
    assert [first.words[i] for i in np.flatnonzero(low.swapped)] == [
        low.words[i] for i in np.flatnonzero(low.swapped)
    ]
    for other in (run(name="e"), run(seed=1)):
        assert not {*other.words} & {*first.words} - {*words}


def test_answers_that_are_no_single_new_word_are_not_taken(library):
    words = ["one", "two", "three", "four", "five", ",", UNK, EOS]
    result = textattack_swap(words, 1, "d", transformation="WordSwapOdd")
    assert result.words == ("one", "two", "three", "four", "new", ",", UNK, EOS)
    assert result.swapped.tolist() == [False] * 4 + [True] + [False] * 3
    assert result.realised_rate == 1 / 5


def test_paper_mode_leaves_stop_words(library):
    words = ["the", "house", "is", EOS, "it", EOS]
    result = textattack_swap(words, 0.01, "d", transformation="WordSwapUpper", mode="paper")
    assert result.words == ("the", "HOUSE", "is", EOS, "it", EOS)


def test_the_process_has_a_home_of_its_own_with_the_stop_words(library):
    result = textattack_swap(["x1"], 1, "d", transformation="WordSwapEnvironment")
    assert result.words == ("179-True-True-1",)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("WordSwapBroken", "WordSwapBroken failed: LookupError: Resource is missing."),
        ("WordSwapOnline", "WordSwapOnline failed: OSError: it tries to download, and evaluation"),
        ("WordSwapUper", "unknown TextAttack word swap 'WordSwapUper': did you mean 'WordSwapUp"),
        ("SentenceSwap", "unknown TextAttack word swap 'SentenceSwap'"),
        ("WordSwap", "unknown TextAttack word swap 'WordSwap'"),
    ],
)
def test_classes_that_fail_are_named(library, name, problem):
    with pytest.raises(UsageError, match=problem):
        textattack_swap(["house"], 1, "d", transformation=name)


def test_a_crash_is_reported(library):
    for _ in range(2):
        with pytest.raises(UsageError, match="textattack: its process ended: out of memory"):
            textattack_swap(["house"], 1, "d", transformation="WordSwapCrash")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("textattack:WordSwapWordNet", r"must work offline .* needs a download \(the NLTK corpus"),
        ("textattack:WordSwapEmbedding", "needs a download"),
        ("textattack:WordSwapHomoglyphSwap", "use char-noise:kind=homoglyph"),
        ("textattack:transformation=WordSwapMaskedLM", "needs a download"),
        ("textattack", "transformation: must name a class of textattack.transformations, such as"),
        ("textattack:rate=0.1", "must name a class of textattack.transformations"),
        ("textattack:WordSwapQWERTY,mode=papr", "mode: input should be"),
    ],
)
def test_classes_that_cannot_work_are_refused_at_once(text, problem):
    with pytest.raises(UsageError, match=problem):
        parse_text_attack(text)


def test_a_direct_call_needs_a_class():
    with pytest.raises(UsageError, match="must name a class"):
        textattack_swap(["house"], 1, "d")


def test_a_missing_extra_is_named_with_its_command(monkeypatch):
    attack = parse_text_attack("textattack:WordSwapQWERTY,rate=1")
    textattack_process.cache_clear()
    monkeypatch.setattr(
        "robustbench_elliptical.attacks.text.textattack_process.find_spec", lambda name: None
    )
    with pytest.raises(
        UsageError, match=r"pip install 'robustbench-elliptical\[textattack\]'"
    ) as caught:
        attack.run(["house"], document_id="d")
    assert not isinstance(caught.value, UnknownNameError)
    assert importlib.util.find_spec("robustbench_elliptical")

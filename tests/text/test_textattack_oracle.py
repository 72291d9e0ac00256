"""Our swaps beside those of the TextAttack library itself, where it is installed."""

import importlib.util
import json
import subprocess
import sys

import pytest

from robustbench_elliptical.attacks.text import parse_text_attack, word_swap
from robustbench_elliptical.attacks.text.textattack_process import (
    textattack_environment,
    textattack_process,
)
from robustbench_elliptical.attacks.text.traits import traits_of
from robustbench_elliptical.data.text import EOS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("textattack") is None, reason="the extra textattack is not installed"
)

LINES = [
    "= Elliptical Attention =",
    "The government is in no way bound by the laws of 1890 , it isn't ; and The House agrees .",
    "government",
    "of the",
    "It cost $ 3 @,@ 500 , about 5 @.@ 2 % of the twenty @-@ first year 's income ; who 'd pay ?",
    "house " * 30 + "the " * 20,
    "N.B the U.S. is x-ray's 'quoted' friend_of @home ** -- ° …",
    "Athènes naïve Αθήνα",
]
RATES = [0.015, 0.025, 0.1, 0.4]
SCRIPT = """
import json, sys
from textattack.augmentation import Augmenter
from textattack.constraints.pre_transformation import StopwordModification
from textattack.shared import AttackedText
from textattack.transformations import WordSwap

class Generic(WordSwap):
    def _get_replacement_words(self, word):
        return ["AAA"]

lines, rates = json.loads(sys.argv[1])
found = []
for line in lines:
    text = AttackedText(line)
    allowed = StopwordModification()._get_modifiable_indices(text)
    counts = []
    for rate in rates:
        augmenter = Augmenter(
            Generic(), constraints=[StopwordModification()], pct_words_to_swap=rate
        )
        (new,) = augmenter.augment(line)
        counts.append(new.count("AAA"))
    found.append(
        {"words": text.words, "eligible": [text.words[i] for i in sorted(allowed)],
         "counts": counts}
    )
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Their words, those that may be swapped, and how many are at each rate, for each line."""
    home = tmp_path_factory.mktemp("home")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([LINES, RATES])],
        env=textattack_environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.strip().split("\n")[-1])


def test_the_same_words_are_words(theirs):
    for line, found in zip(LINES, theirs, strict=True):
        assert traits_of(line.split()).pieces.sum() == len(found["words"])


def test_the_same_words_are_eligible(theirs):
    for line, found in zip(LINES, theirs, strict=True):
        tokens = line.split()
        traits = traits_of(tokens)
        whole = traits.pieces < 2
        ours = [token for token, yes in zip(tokens, traits.content & whole, strict=True) if yes]
        parts = [
            piece
            for token in tokens
            if traits_of([token]).pieces[0] > 1
            for piece in token.replace(".", " ").split()
        ]
        marks = "'-_*@"
        assert [token.strip(marks) for token in ours] == [
            word for word in found["eligible"] if word not in parts
        ]


def test_the_same_number_is_swapped(theirs):
    for line, found in zip(LINES, theirs, strict=True):
        for rate, count in zip(RATES, found["counts"], strict=True):
            swaps = word_swap([*line.split(), EOS], rate, "d", mode="paper").swapped.sum()
            assert swaps == count


@pytest.mark.parametrize(
    "name",
    [
        "WordSwapChangeNumber",
        "WordSwapInvisibleCharacters",
        "WordSwapNeighboringCharacterSwap",
        "WordSwapQWERTY",
        "WordSwapRandomCharacterDeletion",
        "WordSwapRandomCharacterInsertion",
        "WordSwapRandomCharacterSubstitution",
    ],
)
def test_their_word_swaps_run_offline(name):
    words = [*LINES[1].split(), EOS] * 3
    attack = parse_text_attack(f"textattack:{name},rate=0.9")
    result = attack.run(words, document_id="d")
    assert result.swapped.any()
    assert not (result.swapped & ~result.eligible).any()
    assert result.words == attack.run(words, document_id="d").words


def test_a_name_they_lack_is_refused():
    with pytest.raises(ValueError, match="did you mean 'WordSwapQWERTY'"):
        textattack_process().swap("WordSwapQWERT", ["house"], [1])

"""The same contamination in every process, whatever its hash seed and the order of documents."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from robustbench_elliptical.attacks.text import char_noise, word_swap
from robustbench_elliptical.data.text import Vocabulary

SCRIPT = """
import json, sys
from robustbench_elliptical.attacks.text import parse_text_attack
from robustbench_elliptical.data.text import Vocabulary
documents = json.loads(sys.argv[1])
vocabulary = Vocabulary.count(documents.values())
found = {}
for name in json.loads(sys.argv[2]):
    for text in ("word-swap", "word-swap:replacement=random-word", "char-noise:kind=insert"):
        attack = parse_text_attack(text)
        result = attack.run(
            documents[name], document_id=name, rate=0.2, lexicon=vocabulary, seed=7
        )
        found[f"{name} {attack.label}"] = result.words
print(json.dumps([sorted(found.items()), vocabulary.words]))
"""
DOCUMENTS = {name: [f"{name}{number % 17}" for number in range(100)] + ["<eos>"] for name in "abc"}


def test_hash_seeds_and_document_order_change_nothing():
    jobs = []
    for hash_seed, order in (("0", "abc"), ("1", "cba"), ("4242", "bca")):
        jobs.append(
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, json.dumps(DOCUMENTS), json.dumps(list(order))],
                env=os.environ | {"PYTHONHASHSEED": hash_seed},
                stdout=subprocess.PIPE,
            )
        )
    answers = {job.communicate()[0] for job in jobs}
    assert [job.returncode for job in jobs] == [0, 0, 0]
    assert len(answers) == 1
    found = dict(json.loads(answers.pop())[0])
    assert len(found) == 9


def key(text):
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@pytest.mark.parametrize("seed", [0, 3])
def test_the_order_is_that_of_philox_numbers(seed):
    entropy = [seed, key("text/order"), key("a")]
    ranks = np.random.Philox(np.random.SeedSequence(entropy)).random_raw(101).tolist()
    first = sorted(range(100), key=lambda place: ranks[place])[:20]
    swapped = word_swap(DOCUMENTS["a"], 0.2, "a", seed=seed).swapped
    assert np.flatnonzero(swapped).tolist() == sorted(first)


def test_results_stay_as_they_were():
    vocabulary = Vocabulary.count(DOCUMENTS.values())
    results = [
        word_swap(DOCUMENTS["a"], 0.2, "a"),
        word_swap(DOCUMENTS["b"], 0.2, "b", vocabulary, replacement="random-word", seed=5),
        char_noise(DOCUMENTS["c"], 0.2, "c", kind="substitute"),
    ]
    text = "\n".join(" ".join(result.words) for result in results)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "06803825997d3274"

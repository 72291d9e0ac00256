import string

import pytest

from robustbench_elliptical.data.text import EOS, UNK, Vocabulary

PLAIN = "the The and of 1890 3 don't isn't AAA U.S. naïve"
MARKS = "= @-@ @,@ @.@ , . ; ( ) -- ' $ % ° …"
WORDS = [
    *(first + second for first in string.ascii_lowercase for second in "aeiou"),
    *PLAIN.split(),
    *MARKS.split(),
    EOS,
    UNK,
]
PROTECTED = {*MARKS.split(), EOS, UNK}


@pytest.fixture(scope="session")
def protected():
    return PROTECTED


@pytest.fixture(scope="session")
def vocabulary():
    """Every word of `words` strategies, with counts 1, 2, 3, ... from the last to the first."""
    return Vocabulary(WORDS, list(range(len(WORDS), 0, -1)))


@pytest.fixture(scope="session")
def long_document():
    """2,000 words in lines of 25, a fifth of them punctuation."""
    plain = [word for word in WORDS if word not in PROTECTED]
    words = []
    for number in range(2000):
        if number % 25 == 24:
            words.append(EOS)
        elif number % 5 == 3:
            words.append(",")
        else:
            words.append(plain[number * 7 % len(plain)])
    return words

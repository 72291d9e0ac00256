"""Edits of one character, or of two side by side, as typing and look-alike letters make them."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from string import ascii_lowercase
from typing import Literal

__all__ = ["EditKind", "edited", "places"]

EditKind = Literal["delete", "insert", "substitute", "swap-neighbours", "keyboard", "homoglyph"]
"""What happens to a word."""

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
"""A US keyboard; each row stands half a key to the right of the one above."""


def _keyboard() -> dict[str, str]:
    """Return the letters whose keys touch each letter's."""
    near = {letter: "" for row in _ROWS for letter in row}
    for depth, row in enumerate(_ROWS):
        for place, letter in enumerate(row):
            near[letter] += row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
            if depth:
                for above in _ROWS[depth - 1][place : place + 2]:
                    near[letter] += above
                    near[above] += letter
    return near


_NEAR_KEYS = _keyboard()
_HOMOGLYPHS = dict(
    zip(
        "aceijopsxyABCEHIJKMOPSTX",
        "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443"
        "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425",
        strict=True,
    )
)
"""Cyrillic letters by the Latin ones that they look like."""

_Places = Callable[[str], Sequence[int]]
_Edit = Callable[[str, int, int], str]


def edited(word: str, kind: EditKind, where: int, what: int) -> str:
    """Return the word after one edit, always another word than before.

    Parameters
    ----------
    word
        A word that has `places` for the edit.
    kind
        Which edit.
    where, what
        Random numbers, 0 or more, that choose the place and the letter.
    """
    possible = places(word, kind)
    return _EDITS[kind][1](word, possible[where % len(possible)], what)


@lru_cache(maxsize=1 << 16)
def places(word: str, kind: EditKind) -> Sequence[int]:
    """Return where a word can be edited; nowhere if the edit would leave it as it is, or empty."""
    return _EDITS[kind][0](word)


def _delete(word: str, place: int, what: int) -> str:
    del what
    return word[:place] + word[place + 1 :]


def _insert(word: str, place: int, what: int) -> str:
    return word[:place] + ascii_lowercase[what % 26] + word[place:]


def _substitute(word: str, place: int, what: int) -> str:
    letters = ascii_lowercase.replace(word[place].lower(), "")
    return _replaced(word, place, letters[what % len(letters)])


def _swap_neighbours(word: str, place: int, what: int) -> str:
    del what
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _keyboard_slip(word: str, place: int, what: int) -> str:
    near = _NEAR_KEYS[word[place].lower()]
    return _replaced(word, place, near[what % len(near)])


def _homoglyph(word: str, place: int, what: int) -> str:
    del what
    return word[:place] + _HOMOGLYPHS[word[place]] + word[place + 1 :]


def _replaced(word: str, place: int, letter: str) -> str:
    """Put a letter in, in the case of the one before."""
    cased = letter.upper() if word[place].isupper() else letter
    return word[:place] + cased + word[place + 1 :]


_EDITS: dict[EditKind, tuple[_Places, _Edit]] = {
    "delete": (lambda word: range(len(word)) if len(word) > 1 else (), _delete),
    "insert": (lambda word: range(len(word) + 1), _insert),
    "substitute": (lambda word: range(len(word)), _substitute),
    "swap-neighbours": (
        lambda word: [i for i in range(len(word) - 1) if word[i] != word[i + 1]],
        _swap_neighbours,
    ),
    "keyboard": (
        lambda word: [i for i, letter in enumerate(word) if letter.lower() in _NEAR_KEYS],
        _keyboard_slip,
    ),
    "homoglyph": (
        lambda word: [i for i, letter in enumerate(word) if letter in _HOMOGLYPHS],
        _homoglyph,
    ),
}

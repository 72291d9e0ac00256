"""Texts from outside (names, paths, messages), made safe for each format.

HTML is escaped by Jinja2; `plain` comes first for every format.
"""

import re
import unicodedata

__all__ = ["csv_text", "latex", "markdown", "plain"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$@^])")
_ADDRESS = re.compile(r"(?i)\b(www)\.|:(?=//)")
_LINE_START = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=\s|\3|$)")
_FORMULA = ("=", "+", "-", "@", "|", "%")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories of letters that are not seen, among them those that turn the direction of text."""


def plain(text: object) -> str:
    """Return a text on one line, with letters that can't be seen written by their number."""
    line = " ".join(str(text).split())
    if line.isprintable():
        return line
    return "".join(_visible(letter) for letter in line)


def _visible(letter: str) -> str:
    if unicodedata.category(letter) not in _HIDDEN:
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def markdown(text: object) -> str:
    """Return a text that Markdown shows as it is: no markup, no link, no break of a table."""
    escaped = _SPECIAL.sub(r"\\\1", plain(text))
    escaped = _ADDRESS.sub(lambda found: f"{found[1]}\\." if found[1] else "\\:", escaped)
    return _LINE_START.sub(
        lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}", escaped
    )


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": r"{-}",
    "[": r"{[}",
    "]": r"{]}",
    "\u2026": r"\ldots{}",
    "\u2212": r"{-}",
}


def latex(text: object) -> str:
    """Return a text that LaTeX sets as it is, in every engine.

    Letters outside ASCII that no font is sure to have are written by their number, ``U+4E2D``.
    Long words may break after ``/``, ``_``, ``,`` and ``=``.
    """
    parts = []
    for word in plain(text).split(" "):
        letters = [_set(letter) for letter in word]
        parts.append("".join(letters))
    return " ".join(parts)


def _set(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter] + (r"\allowbreak{}" if letter == "_" else "")
    if letter in "/,=":
        return letter + r"\allowbreak{}"
    if letter.isascii():
        return letter
    if "\u00c0" <= letter <= "\u017f" and letter not in "\u00d7\u00f7":
        return letter
    return f"[U+{ord(letter):04X}]".replace("[", "{[}").replace("]", "{]}")


def csv_text(value: object) -> object:
    """Return a text that no spreadsheet takes for a formula; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text

"""Text from outside (names, paths, messages) made harmless for a format."""

import re

__all__ = ["code", "one_line", "workflow_data", "workflow_property", "xml_text"]

_RUNS = re.compile("`+")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def one_line(text: object) -> str:
    """Return text on one line, without control characters and other invisible ones."""
    squeezed = " ".join(str(text).split())
    return "".join(each if each.isprintable() else "\ufffd" for each in squeezed)


def code(text: object) -> str:
    """Return text as a Markdown code span: nothing in it is a link, a mention, a tag or HTML."""
    shown = one_line(text)
    if not shown:
        return ""
    fence = "`" * (1 + max((len(run) for run in _RUNS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def workflow_data(text: object) -> str:
    """Return text as the message of a GitHub workflow command."""
    return str(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: object) -> str:
    """Return text as a property, such as the title, of a GitHub workflow command."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def xml_text(text: object) -> str:
    """Return text without the characters that no XML 1.0 document may hold."""
    return _NOT_XML.sub("\ufffd", str(text))

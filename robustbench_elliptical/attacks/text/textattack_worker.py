"""The far side of `robustbench_elliptical.attacks.text.textattack_process`; run as a script.

Reads one JSON object a line, ``{"name": CLASS, "words": [...], "seeds": [...]}``, and answers each
with ``{"words": [...]}``, ``{"known": [...]}`` if TextAttack has no such class, or ``{"error":
"..."}``. Imports nothing of the package: it needs TextAttack alone.
"""

import json
import os
import random
import socket
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

__all__: list[str] = []


def main() -> None:
    """Answer until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # Whatever a library prints must not look like an answer.
        socket.getaddrinfo = _refuse  # type: ignore[assignment]
        socket.socket.connect = _refuse  # type: ignore[method-assign]
        for line in sys.stdin:
            answers.write(json.dumps(_answer(**json.loads(line))) + "\n")
            answers.flush()


def _answer(name: str, words: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    try:
        known = _known()
        if name not in known:
            return {"known": known}
        return {"words": [_swapped(name, *each) for each in zip(words, seeds, strict=True)]}
    except Exception as error:  # Whatever TextAttack and its many dependencies raise.
        lines = [line.strip(" *\t") for line in str(error).split("\n")]
        reason = next((line for line in lines if line), "no reason given")
        return {"error": f"{type(error).__name__}: {reason}"}


def _known() -> list[str]:
    transformations = import_module("textattack.transformations")
    return sorted(
        name
        for name, each in vars(transformations).items()
        if isinstance(each, type)
        and issubclass(each, transformations.WordSwap)
        and each is not transformations.WordSwap
    )


@cache
def _augmenter(name: str) -> Any:
    transformation = getattr(import_module("textattack.transformations"), name)
    augmenter = import_module("textattack.augmentation").Augmenter
    return augmenter(transformation=transformation(), pct_words_to_swap=1.0)


def _swapped(name: str, word: str, seed: int) -> str:
    augmenter = _augmenter(name)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - TextAttack draws from the global generators.
    (text,) = augmenter.augment(word)
    return str(text)


def _refuse(*_: Any) -> NoReturn:
    raise OSError("it tries to download, and evaluation runs without the network")


if __name__ == "__main__":
    main()

"""TextAttack in a process of its own.

Importing it takes 9 seconds and 1.1 GB, needs an NLTK corpus that it would download, changes
HF_HOME and XDG_CACHE_HOME and advances the global random state. In a child all of that stays there:
its home is a temporary folder that holds the stop words, and it has no network.
"""

import atexit
import json
import os
import site
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from robustbench_elliptical.attacks.text.textattack_classes import REFUSED
from robustbench_elliptical.attacks.text.traits import stop_words
from robustbench_elliptical.core.errors import UnknownNameError, UsageError

__all__ = ["TextAttackProcess", "textattack_environment", "textattack_process"]

_WORKER = Path(__file__).with_name("textattack_worker.py")


def textattack_environment(home: Path) -> dict[str, str]:
    """Prepare a folder in which TextAttack imports offline; return the process's environment.

    Parameters
    ----------
    home
        An empty folder that stands in for the user's home.
    """
    corpus = home / "nltk_data" / "corpora" / "stopwords" / "english"
    corpus.parent.mkdir(parents=True)
    corpus.write_text("\n".join(sorted(stop_words())) + "\n", encoding="utf-8")
    downloads = home / "textattack"
    downloads.mkdir()
    (downloads / "post_install_check_3").touch()  # Or the import downloads NLTK corpora.
    return os.environ | {
        "FLAIR_CACHE_ROOT": str(home / "flair"),
        "HF_HUB_OFFLINE": "1",
        "HOME": str(home),
        "NLTK_DATA": str(home / "nltk_data"),
        "PYTHONHASHSEED": "0",
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONWARNINGS": "ignore",
        "TA_CACHE_DIR": str(downloads),
        "TMPDIR": str(home),
    }


class TextAttackProcess:
    """Swaps words through TextAttack's Augmenter; starts at once and lives until `close`.

    Raises
    ------
    UsageError
        If TextAttack is not installed.
    """

    def __init__(self) -> None:
        if find_spec("textattack") is None:
            raise UsageError(
                "attack textattack needs the package of that name: "
                "pip install 'robustbench-elliptical[textattack]'"
            )
        self._home = TemporaryDirectory(prefix="textattack-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        self._log = home / "log.txt"
        environment = textattack_environment(home)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                encoding="utf-8",
            )

    def swap(self, name: str, words: Sequence[str], seeds: Sequence[int]) -> list[str]:
        """Return what the transformation `name` makes of each word.

        Parameters
        ----------
        name
            A class of ``textattack.transformations``.
        words
            One token each.
        seeds
            Seeds TextAttack's random generators before each word, in 0..2**32 - 1.

        Raises
        ------
        UsageError
            If there is no such class, it fails, or the process has ended.
        """
        question = json.dumps({"name": name, "words": list(words), "seeds": list(seeds)})
        answer = json.loads(self._ask(f"{question}\n"))
        if "known" in answer:
            usable = [known for known in answer["known"] if known not in REFUSED]
            raise UnknownNameError("TextAttack word swap", name, usable)
        if "error" in answer:
            raise UsageError(f"attack textattack: {name} failed: {answer['error']}")
        return [str(word) for word in answer["words"]]

    def close(self) -> None:
        """End the process and remove its folder."""
        self._process.communicate()
        self._home.cleanup()

    def _ask(self, question: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(question)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
            raise UsageError(f"attack textattack: its process ended: {last.strip()}")
        return answer


@cache
def textattack_process() -> TextAttackProcess:
    """Return the one process, started at first use and closed when Python exits."""
    process = TextAttackProcess()
    atexit.register(process.close)
    return process

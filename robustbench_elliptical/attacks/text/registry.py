"""A text attack chosen with its settings, and run: ``word-swap:replacement=unk``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.choice import Choice
from robustbench_elliptical.attacks.text.checks import check_rate
from robustbench_elliptical.attacks.text.contaminated import Contaminated, ContaminatedTokens
from robustbench_elliptical.attacks.text.entries import TEXT_ATTACKS, TextEntry
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.oracle import TextOracle
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.specs import parse_settings

__all__ = ["TEXT_ATTACKS", "TextChoice", "TextEntry", "parse_text_attack"]


@dataclass(frozen=True)
class TextChoice(Choice):
    """A text attack with its settings, checked; build one with `of` or `parse_text_attack`."""

    rate: float | None = None
    """Share of the eligible words if the choice has its own, otherwise None."""

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> "TextChoice":
        """Choose an attack by name, with settings as values or as text.

        Parameters
        ----------
        name
            A registered attack.
        values
            Settings of the attack, and possibly ``rate``.

        Raises
        ------
        UnknownNameError
            If there is no such attack or setting.
        UsageError
            If a value is not as the setting needs it.
        """
        entry = TEXT_ATTACKS[name]
        given = ({entry.bare: ""} if entry.bare else {}) | dict(values)
        rate = given.pop("rate", None)
        settings = validated(entry.settings, given, f"attack {name}")
        return cls(name, settings, None if rate is None else check_rate(rate))

    @property
    def entry(self) -> TextEntry:
        """The registered attack."""
        return TEXT_ATTACKS[self.name]

    def run(
        self,
        words: Sequence[str],
        *,
        document_id: str,
        rate: float | None = None,
        lexicon: Lexicon | None = None,
        seed: int = 0,
    ) -> Contaminated:
        """Contaminate one document by an attack that asks no model.

        Parameters
        ----------
        words
            Its words, ``<eos>`` at the end of each line.
        document_id
            What the draws are keyed on, beside the seed.
        rate
            Share of the eligible words, in [0, 1]; the choice's own if None.
        lexicon
            The vocabulary, for an attack that draws words from it.
        seed
            Seed, 0 or more.

        Raises
        ------
        UsageError
            If there is no rate, the attack asks the model, or it refuses an argument.
        """
        if self.entry.asks_model:
            raise UsageError(
                f"attack {self.name} needs the model, got words alone; call run_tokens with an "
                "oracle"
            )
        settings = dict(self.settings)
        result: Contaminated = self.entry.function(
            words, self._share(rate), document_id, lexicon, seed=seed, **settings
        )
        return result

    def run_tokens(
        self,
        tokens: npt.NDArray[np.integer],
        *,
        document_id: str,
        lexicon: Lexicon,
        oracle: TextOracle,
        rate: float | None = None,
        seed: int = 0,
        start: npt.NDArray[np.integer] | None = None,
    ) -> ContaminatedTokens:
        """Contaminate one document by an attack that asks the model.

        Parameters
        ----------
        tokens
            Numbers of its words, shape (words,).
        document_id, rate, seed
            See `run`.
        lexicon
            The vocabulary that numbers them.
        oracle
            The model's losses on this document.
        start
            Where the attack begins, such as its result at a smaller rate; the document if None.

        Raises
        ------
        UsageError
            If there is no rate, the attack asks no model, or it refuses an argument.
        NonFiniteLossError
            If the model answers with NaN or infinity.
        """
        if not self.entry.asks_model:
            raise UsageError(f"attack {self.name} asks no model and takes words; call run")
        settings = dict(self.settings)
        result: ContaminatedTokens = self.entry.function(
            tokens,
            self._share(rate),
            document_id,
            lexicon,
            oracle,
            start,
            seed=seed,
            **settings,
        )
        return result

    def _share(self, rate: float | None) -> float:
        share = self.rate if rate is None else rate
        if share is None:
            raise UsageError(f"attack {self.name} needs a rate, such as rate=0.025")
        return share


def parse_text_attack(text: str) -> TextChoice:
    """Parse what the command line takes for a text attack.

    Parameters
    ----------
    text
        ``NAME`` or ``NAME:key=value,...``, such as ``word-swap:rate=0.025,replacement=unk``. The
        name of the setting `TextEntry.bare` may be left out: ``textattack:WordSwapQWERTY``.

    Raises
    ------
    UnknownNameError
        If there is no such attack or setting; the message suggests some.
    UsageError
        If the text or a value is malformed.
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not name:
        raise UsageError(f"attack must be NAME or NAME:key=value,..., got {text!r}")
    bare = TEXT_ATTACKS[name].bare
    if bare and rest and "=" not in rest.partition(",")[0]:
        rest = f"{bare}={rest}"
    return TextChoice.of(name, parse_settings(rest, f"attack {name}") if colon else {})

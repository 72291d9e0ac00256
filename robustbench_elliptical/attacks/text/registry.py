"""The text attacks by name, and one chosen with its settings: ``word-swap:replacement=unk``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from robustbench_elliptical.attacks.registry import Knowledge
from robustbench_elliptical.attacks.settings import settings_schema
from robustbench_elliptical.attacks.text.char_noise import char_noise
from robustbench_elliptical.attacks.text.checks import check_rate
from robustbench_elliptical.attacks.text.contaminated import Contaminated
from robustbench_elliptical.attacks.text.lexicon import Lexicon
from robustbench_elliptical.attacks.text.textattack_swap import textattack_swap
from robustbench_elliptical.attacks.text.word_swap import word_swap
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.registry import Registry
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.specs import parse_settings

__all__ = ["TEXT_ATTACKS", "TextChoice", "TextEntry", "parse_text_attack"]


@dataclass(frozen=True)
class TextEntry:
    """What the toolkit knows about a text attack beside its function."""

    name: str
    function: Callable[..., Any]
    """Takes (words, rate, document_id, lexicon, *, its settings, seed), returns `Contaminated`."""
    knowledge: Knowledge
    summary: str
    """One line for listings."""
    paper: str
    """Where it comes from; empty for our own."""
    bare: str = ""
    """The setting that may be written without its name, first; it must be given."""

    @property
    def settings(self) -> type[BaseModel]:
        """The settings model: the function's keyword-only parameters."""
        return settings_schema(self.function)


TEXT_ATTACKS: Registry[TextEntry] = Registry("text attack")

for _entry in (
    TextEntry(
        name="word-swap",
        function=word_swap,
        knowledge="none",
        summary="words replaced by AAA, by random words or by <unk>",
        paper="Nielsen et al. 2024, arXiv 2406.13770",
    ),
    TextEntry(
        name="char-noise",
        function=char_noise,
        knowledge="none",
        summary="one character of a word deleted, inserted, replaced, mistyped or faked",
        paper="",
    ),
    TextEntry(
        name="textattack",
        function=textattack_swap,
        knowledge="none",
        summary="a word swap of the TextAttack library, textattack:CLASS",
        paper="Morris et al. 2020, arXiv 2005.05909",
        bare="transformation",
    ),
):
    TEXT_ATTACKS.add(_entry.name, _entry)


@dataclass(frozen=True)
class TextChoice:
    """A text attack with its settings, checked; build one with `of` or `parse_text_attack`."""

    name: str
    settings: BaseModel
    """An instance of the entry's settings model."""
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

    @property
    def knowledge(self) -> Knowledge:
        """What the attack sees of the model."""
        return self.entry.knowledge

    @property
    def label(self) -> str:
        """The name, and in the signature's order whatever differs from the defaults.

        Without the rate: one attack at several rates is still one attack.
        """
        defaults = type(self.settings)().model_dump(mode="json")
        parts = [
            f"{key}={value}" for key, value in self.resolved().items() if value != defaults[key]
        ]
        return f"{self.name}({','.join(parts)})" if parts else self.name

    def resolved(self) -> dict[str, Any]:
        """Return every setting including the defaults, ready for JSON; the rate is not among them.

        `of` builds the same choice from it.
        """
        return self.settings.model_dump(mode="json")

    def run(
        self,
        words: Sequence[str],
        *,
        document_id: str,
        rate: float | None = None,
        lexicon: Lexicon | None = None,
        seed: int = 0,
    ) -> Contaminated:
        """Contaminate one document.

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
            If there is no rate, or the attack refuses an argument.
        """
        share = self.rate if rate is None else rate
        if share is None:
            raise UsageError(f"attack {self.name} needs a rate, such as rate=0.025")
        settings = dict(self.settings)
        result: Contaminated = self.entry.function(
            words, share, document_id, lexicon, seed=seed, **settings
        )
        return result


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

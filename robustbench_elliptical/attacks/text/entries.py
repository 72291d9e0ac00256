"""The text attacks by name."""

from dataclasses import dataclass

from robustbench_elliptical.attacks.choice import Entry
from robustbench_elliptical.attacks.text.adversarial_swap import adversarial_swap
from robustbench_elliptical.attacks.text.char_noise import char_noise
from robustbench_elliptical.attacks.text.textattack_swap import textattack_swap
from robustbench_elliptical.attacks.text.word_swap import word_swap
from robustbench_elliptical.core.registry import Registry

__all__ = ["TEXT_ATTACKS", "TextEntry"]


@dataclass(frozen=True)
class TextEntry(Entry):
    """What the toolkit knows about a text attack beside its function.

    A function that asks no model takes (words, rate, document_id, lexicon, *, its settings, seed)
    and returns `Contaminated`. One that does takes (tokens, rate, document_id, lexicon, oracle,
    start, *, its settings, seed) and returns `ContaminatedTokens`.
    """

    bare: str = ""
    """The setting that may be written without its name, first; it must be given."""

    @property
    def asks_model(self) -> bool:
        """Whether it needs the model."""
        return self.knowledge != "none"


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
    TextEntry(
        name="adversarial-swap",
        function=adversarial_swap,
        knowledge="white-box",
        summary="words replaced by those that raise the model's loss most, ranked by its gradient",
        paper="Ebrahimi et al. 2018, arXiv 1712.06751",
    ),
):
    TEXT_ATTACKS.add(_entry.name, _entry)

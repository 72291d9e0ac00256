"""Card files: reading, writing, those that ship, and the files that a card names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import tomli_w

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.core.toml import read_toml
from robustbench_elliptical.models.architecture import FAMILIES
from robustbench_elliptical.models.cards.attention import resolved_attention
from robustbench_elliptical.models.cards.image import ImageCard
from robustbench_elliptical.models.cards.language import LanguageCard

__all__ = [
    "Card",
    "Task",
    "card_to_toml",
    "checkpoint_path",
    "list_models",
    "load_card",
    "shipped_cards",
    "vocabulary_path",
]

Card = ImageCard | LanguageCard
"""The card of a model of any task."""
Task = Literal["image-classification", "language-modelling"]
"""What a model does."""


def load_card(path: str | Path) -> Card:
    """Read a card; one that states no task is an image classifier's.

    Raises
    ------
    UsageError
        If the file can't be read, is not TOML, or is no valid card.
    """
    path = Path(path)
    subject = f"card {path}"
    card = _card(read_toml(path, subject), subject)
    if isinstance(card, ImageCard):
        _check_classes(card, subject)
    try:
        resolved_attention(card)
    except UsageError as error:
        raise UsageError(f"{subject}: {error}") from None
    return card


def shipped_cards() -> dict[str, Path]:
    """Return the path of every card that ships with the package, by model name, sorted."""
    cards = {path.stem: path for path in shipped("models/cards").glob("*.toml")}
    return dict(sorted(cards.items()))


def list_models() -> list[Card]:
    """Return every card that ships with the package, sorted by name."""
    return [load_card(path) for path in shipped_cards().values()]


def checkpoint_path(card: Card, card_path: Path) -> Path | None:
    """Return where the card's weights lie, or none if the user brings them."""
    return None if card.checkpoint is None else _folder(card_path) / card.checkpoint.file


def vocabulary_path(card: LanguageCard, card_path: Path) -> Path | None:
    """Return where the card's vocabulary lies, or none if the user brings it."""
    return None if card.vocabulary is None else _folder(card_path) / card.vocabulary.file


def card_to_toml(card: Card) -> str:
    """Return the text of a card file; `load_card` reads it back to an equal card."""
    return tomli_w.dumps(card.model_dump(mode="json", exclude_none=True))


def _card(values: Mapping[str, Any], subject: str) -> Card:
    task = values.get("task", "image-classification")
    if task == "image-classification":
        _check_family(values, subject)
        return validated(ImageCard, values, subject)
    if task == "language-modelling":
        return validated(LanguageCard, values, subject)
    raise UsageError(
        f"{subject}: task: input should be 'image-classification' or 'language-modelling', "
        f"got {task!r}"
    )


def _check_family(values: Mapping[str, Any], subject: str) -> None:
    """Name an unknown family before anything that only another family would state."""
    stated = values.get("architecture")
    family = stated.get("family") if isinstance(stated, Mapping) else None
    if isinstance(family, str) and family not in FAMILIES:
        hint = "" if "task" in values else "A language model's card states its task."
        raise UnknownNameError(f"architecture.family of {subject}", family, FAMILIES, hint)


def _check_classes(card: ImageCard, subject: str) -> None:
    classes, expected = card.classes, card.architecture.num_classes
    if classes is not None and len(classes) != expected:
        raise UsageError(f"{subject}: classes must be {expected} names, got {len(classes)}")


def _folder(card_path: Path) -> Path:
    """Return the folder that the names of files on a card start from."""
    folder = card_path.resolve().parent
    if folder == shipped("models/cards").resolve():
        return shipped("models/checkpoints")
    return folder

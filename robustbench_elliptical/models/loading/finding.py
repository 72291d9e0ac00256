"""Which card a name stands for."""

from pathlib import Path
from typing import NamedTuple

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.models.cards import Card, load_card, shipped_cards

__all__ = ["FoundCard", "find_card"]

_WAYS_OUT = (
    "Give the name of a card (robustbench_elliptical.models.list_models()), a card file ending in "
    ".toml, a checkpoint together with card=CARD, timm:NAME with checkpoint=PATH, or hf:DIR."
)
_CHECKPOINT_SUFFIXES = {".pth", ".pt", ".safetensors", ".bin", ".ckpt", ".tar", ".toml"}


class FoundCard(NamedTuple):
    """A card, where it lies, and the checkpoint that the user chose instead of its own."""

    card: Card
    path: Path
    checkpoint: Path | None


def find_card(
    name: str, checkpoint: str | Path | None = None, card: str | Path | None = None
) -> FoundCard:
    """Return the card that `name` stands for; the arguments are those of `load_model`.

    Raises
    ------
    UsageError
        If there is none, or the arguments contradict each other.
    """
    shipped = shipped_cards()
    chosen = None if checkpoint is None else Path(checkpoint)
    if card is not None:
        path = shipped.get(str(card), Path(card))
        if path.suffix != ".toml":
            raise UnknownNameError("card", str(card), shipped, "A card file ends in .toml.")
        found = load_card(path)
        if chosen is None and (name != found.name or Path(name).exists()):
            return FoundCard(found, path, Path(name))
        if name != found.name:
            raise UsageError(
                f"model {name!r} with both a checkpoint and a card must be the card's name "
                f"{found.name!r}; give the checkpoint once"
            )
        return FoundCard(found, path, chosen)
    if name in shipped:
        return FoundCard(load_card(shipped[name]), shipped[name], chosen)
    path = Path(name)
    if path.suffix == ".toml" and path.exists():
        return FoundCard(load_card(path), path, chosen)
    if path.is_file():
        raise UsageError(
            f"model {name!r} is a checkpoint without a card, and its attention can't be told from "
            "its tensors (an Elliptical and a softmax checkpoint hold the same ones); say what it "
            "is with card=CARD, a shipped card's name or a file ending in .toml"
        )
    raise UnknownNameError("model", name, shipped, _remark(name) + _WAYS_OUT)


def _remark(name: str) -> str:
    """Return what else a message should say about a name that is no model."""
    path = Path(name)
    if "," in name:
        return "What follows the comma is for parse_model or the command line. "
    if path.is_dir():
        return f"It is a folder; name the file in it, or write hf:{name} for a Hugging Face one. "
    if path.suffix in _CHECKPOINT_SUFFIXES or len(path.parts) > 1:
        return f"There is no file {name} either. "
    return ""

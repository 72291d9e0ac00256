"""Turn the authors' ``model.pt`` into files that load without a pickle: weights, words, card."""

import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import Vocabulary
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.cards import (
    CheckpointFile,
    LanguageCard,
    VocabularyFile,
    card_to_toml,
    vocabulary_path,
)
from robustbench_elliptical.models.hashing import file_sha256
from robustbench_elliptical.models.language import (
    DecoderArchitecture,
    build_language_model,
    compact_state,
    convert,
)
from robustbench_elliptical.models.loading import find_card, language_model_from_card

__all__ = ["ConvertedModel", "convert_model"]


class ConvertedModel(NamedTuple):
    """What was written."""

    card_path: Path
    checkpoint_path: Path
    vocabulary_path: Path


def convert_model(
    model_file: str | Path,
    card: str | Path,
    output: str | Path,
    *,
    vocabulary: str | Path | None = None,
) -> ConvertedModel:
    """Write the weights as safetensors, the vocabulary and the completed card: all or nothing.

    Parameters
    ----------
    model_file
        The whole pickled module that the authors' training saves; nothing of it is run.
    card
        A language model's card: a file, or the name of a shipped one.
    output
        Folder for the files; made if it isn't there.
    vocabulary
        The words that the model was trained with, if they don't lie where the card says.

    Raises
    ------
    UsageError
        If the file is refused or damaged, the parts don't fit each other, or a file of the same
        name lies in the folder.
    """
    found = find_card(str(card))
    if not (
        isinstance(found.card, LanguageCard)
        and isinstance(found.card.architecture, DecoderArchitecture)
    ):
        raise UsageError(
            f"card {card} must describe a language model of family decoder, as those that are "
            f"converted are, got {found.card.task} of family {found.card.architecture.family}"
        )
    words = _vocabulary(found.card, found.path, vocabulary)
    own = words.name if found.card.vocabulary is None else Path(found.card.vocabulary.file).name
    files = _files(Path(output), found.card.name, own)
    _refuse_existing(files, words)
    state = _stored(model_file, found.card.architecture)
    folder, missing = Path(output), _missing(Path(output))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".converting-", dir=folder) as partial:
            written = _files(Path(partial), found.card.name, own)
            language_model_from_card(_write(written, found.card, state, words), written.card_path)
            _move(written, files)
    except BaseException as error:
        with suppress(OSError):
            for each in missing:
                each.rmdir()
        if isinstance(error, OSError):
            raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from None
        raise
    return files


def _vocabulary(card: LanguageCard, card_path: Path, chosen: str | Path | None) -> Path:
    path = vocabulary_path(card, card_path) if chosen is None else Path(chosen)
    if path is None or (chosen is None and not path.is_file()):
        where = "names none" if path is None else f"lacks {path}"
        raise UsageError(
            f"model {card.name} must come with its vocabulary, but the card {where}; give the "
            "words that it was trained with as vocabulary (--vocabulary FILE)"
        )
    Vocabulary.load(path).check_fits(card.architecture.vocab_size, f"model {card.name}")
    if card.vocabulary is not None and file_sha256(path) != card.vocabulary.sha256:
        raise UsageError(
            f"vocabulary {path} must have the SHA-256 {card.vocabulary.sha256[:12]}... that its "
            "card states; give that file, or remove the section from the card"
        )
    return path


def _files(folder: Path, name: str, vocabulary: str) -> ConvertedModel:
    files = ConvertedModel(
        folder / f"{name}.toml", folder / f"{name}.safetensors", folder / vocabulary
    )
    if len(set(files)) < len(files):
        raise UsageError(
            f"vocabulary {vocabulary} must not be called as a file of model {name} is; rename it"
        )
    return files


def _refuse_existing(files: ConvertedModel, words: Path) -> None:
    """Refuse to replace anything; a vocabulary that is there already is shared if it is equal."""
    for path in files:
        shared = path == files.vocabulary_path and path.is_file()
        if path.exists() and not (shared and file_sha256(path) == file_sha256(words)):
            raise UsageError(f"{path} exists; give another folder or move it away")


def _stored(model_file: str | Path, architecture: DecoderArchitecture) -> dict[str, Tensor]:
    """Return the tensors as they are stored, without those that a compact file leaves out."""
    with torch.random.fork_rng(devices=[]):
        state = convert(model_file, architecture)
    with torch.device("meta"):
        model = build_language_model(architecture, AttentionChoice(mechanism="softmax"))
    return {name: state[name].detach().clone().contiguous() for name in compact_state(model)}


def _missing(folder: Path) -> list[Path]:
    """Return the folder and its parents as far as they don't exist, deepest first."""
    return [each for each in (folder, *folder.parents) if not each.exists()]


def _write(
    files: ConvertedModel, card: LanguageCard, state: dict[str, Tensor], words: Path
) -> LanguageCard:
    """Write the files; returns the card with what they are called and hash to."""
    save_file(state, files.checkpoint_path)
    shutil.copyfile(words, files.vocabulary_path)
    weights, vocabulary = files.checkpoint_path, files.vocabulary_path
    completed = card.model_copy(
        update={
            "checkpoint": CheckpointFile(file=weights.name, sha256=file_sha256(weights)),
            "vocabulary": VocabularyFile(file=vocabulary.name, sha256=file_sha256(vocabulary)),
            # What another checkpoint scored is no promise of this one.
            "measured": card.measured if card.checkpoint is None else (),
        }
    )
    files.card_path.write_text(card_to_toml(completed), encoding="utf-8")
    return completed


def _move(written: ConvertedModel, files: ConvertedModel) -> None:
    """Move the files to where they belong, the card last; all or none."""
    moved: list[Path] = []
    try:
        for source, target in reversed(list(zip(written, files, strict=True))):
            if target.exists() and file_sha256(target) == file_sha256(source):
                continue
            source.rename(target)
            moved.append(target)
    except BaseException:
        for each in moved:
            each.unlink()
        raise

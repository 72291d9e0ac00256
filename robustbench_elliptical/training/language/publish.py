"""Turn a trained language model into what ships: a small fp16 checkpoint, words and a card."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import save_file
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import Vocabulary
from robustbench_elliptical.data.text import TextCorpus
from robustbench_elliptical.evaluation.text.measure import measure_clean
from robustbench_elliptical.models.cards import (
    CheckpointFile,
    LanguageCard,
    PerplexityMeasurement,
    Training,
    VocabularyFile,
    card_to_toml,
)
from robustbench_elliptical.models.hashing import file_sha256
from robustbench_elliptical.models.language import LanguageModel, compact_state
from robustbench_elliptical.models.loading import language_model_from_card
from robustbench_elliptical.training.language.trainer import LanguageTrainingJob

__all__ = [
    "PublishedLanguageModel",
    "measure_published",
    "publish_card",
    "publish_language",
]


class PublishedLanguageModel(NamedTuple):
    """What was written."""

    card: LanguageCard
    card_path: Path
    checkpoint_path: Path
    vocabulary_path: Path


def publish_language(
    job: LanguageTrainingJob,
    model: LanguageModel,
    vocabulary: Vocabulary,
    measurements: Sequence[PerplexityMeasurement],
    command: str,
) -> PublishedLanguageModel:
    """Write ``NAME.safetensors`` (fp16), its card and ``DATA.vocab.txt`` into the job's folder.

    Models trained on the same data share the vocabulary's file. The weights that ship are rounded,
    so measure those: see `measure_published`.

    Parameters
    ----------
    job, model
        The job and its trained model.
    vocabulary
        The words it was trained with.
    measurements
        Clean perplexities of the published weights, for the card.
    command
        The command line that trains the model again.

    Raises
    ------
    UsageError
        If the vocabulary isn't the model's, or another one lies in the folder already.
    """
    vocabulary.check_fits(job.vocab_size, f"model {job.name}")
    card = LanguageCard(
        name=job.name,
        family=job.family,
        seed=job.seed,
        licence="Apache-2.0",
        source="trained by this project",
        architecture=job.architecture,
        attention=job.recipe.attention_choice(job.variant),
        training=Training(
            command=command,
            recipe=job.recipe.name,
            recipe_version=job.recipe.version,
            epochs=job.recipe.optimisation.epochs,
        ),
        measured=tuple(measurements),
    )
    return publish_card(card, compact_state(model), vocabulary, job.recipe.data, job.output)


def publish_card(
    card: LanguageCard,
    state: Mapping[str, Tensor],
    vocabulary: Vocabulary,
    data: str,
    output: Path,
) -> PublishedLanguageModel:
    """Write weights, vocabulary and card into a folder.

    Parameters
    ----------
    card
        Without its files.
    state
        What the checkpoint holds.
    vocabulary, data
        The words, and what they were counted on: the file is ``DATA.vocab.txt``.
    output
        The folder.

    Raises
    ------
    UsageError
        If another vocabulary of that name lies in the folder already.
    """
    words = _share(vocabulary, output / f"{data}.vocab.txt")
    checkpoint = output / f"{card.name}.safetensors"
    partial = checkpoint.with_suffix(".partial")
    save_file(dict(state), partial)
    partial.chmod(0o644)
    partial.replace(checkpoint)
    files = {
        "vocabulary": VocabularyFile(file=words.name, sha256=file_sha256(words)),
        "checkpoint": CheckpointFile(file=checkpoint.name, sha256=file_sha256(checkpoint)),
    }
    complete = card.model_copy(update=files)
    path = output / f"{card.name}.toml"
    path.write_text(card_to_toml(complete), encoding="utf-8")
    return PublishedLanguageModel(complete, path, checkpoint, words)


def measure_published(
    published: PublishedLanguageModel, corpus: TextCorpus
) -> PublishedLanguageModel:
    """Measure the published weights on the corpus's parts and write that on the card.

    The parts to choose by and to report on, whole, in the way that `eval` reads by default.

    Raises
    ------
    UsageError
        If the corpus has no such part.
    """
    loaded = language_model_from_card(published.card, published.card_path)
    measured = tuple(measure_clean(loaded, corpus.split(split)) for split in ("valid", "test"))
    card = published.card.model_copy(update={"measured": measured})
    published.card_path.write_text(card_to_toml(card), encoding="utf-8")
    return published._replace(card=card)


def _share(vocabulary: Vocabulary, path: Path) -> Path:
    """Write a vocabulary, or find that it lies there already; returns the path."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    vocabulary.save(partial)
    try:
        if not path.exists():
            partial.replace(path)
        elif file_sha256(partial) != file_sha256(path):
            raise UsageError(
                f"vocabulary {path} differs from the one that this model was trained with; "
                "publish into another folder"
            )
    finally:
        partial.unlink(missing_ok=True)
    return path

"""Turn a trained network into what ships: a small fp16 checkpoint and its card."""

from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file

from robustbench_elliptical.data import ImageData
from robustbench_elliptical.models import (
    ImageClassifier,
    card_to_toml,
)
from robustbench_elliptical.models.cards import (
    CheckpointFile,
    ImageCard,
    InputNormalisation,
    Measurement,
    Training,
)
from robustbench_elliptical.models.hashing import file_sha256
from robustbench_elliptical.models.loading import classifier_from_card
from robustbench_elliptical.training.trainer import TrainingJob

__all__ = ["Published", "count_correct", "publish"]

_BATCH = 500


class Published(NamedTuple):
    """What was written."""

    card: ImageCard
    card_path: Path
    checkpoint_path: Path


def publish(
    job: TrainingJob, model: ImageClassifier, test_data: ImageData, command: str
) -> Published:
    """Write ``NAME.safetensors`` (fp16) and ``NAME.toml`` into the job's folder.

    The accuracy on the card is measured on `test_data` with the fp16 weights read back.

    Parameters
    ----------
    job, model
        The job and its trained model.
    test_data
        The full test set.
    command
        The command line that trains the model again.
    """
    checkpoint_path = job.output / f"{job.name}.safetensors"
    card_path = job.output / f"{job.name}.toml"
    state = {key: value.half().contiguous() for key, value in model.network.state_dict().items()}
    partial = checkpoint_path.with_suffix(".partial")
    save_file(state, partial)
    partial.replace(checkpoint_path)
    bare = _card(job, checkpoint_path, test_data, command)
    card_path.write_text(card_to_toml(bare), encoding="utf-8")
    correct = count_correct(classifier_from_card(bare, card_path), test_data)
    measured = Measurement(
        data=job.recipe.data,
        n=len(test_data),
        correct=correct,
        clean_accuracy=round(correct / len(test_data), 4),
    )
    card = bare.model_copy(update={"measured": (measured,)})
    card_path.write_text(card_to_toml(card), encoding="utf-8")
    return Published(card, card_path, checkpoint_path)


def count_correct(model: ImageClassifier, data: ImageData) -> int:
    """Return how many samples of `data` the model classifies right."""
    correct = 0
    with torch.no_grad():
        for batch in data.batches(range(len(data)), _BATCH):
            correct += int((model(batch.images).argmax(dim=1) == batch.labels).sum())
    return correct


def _card(job: TrainingJob, checkpoint_path: Path, data: ImageData, command: str) -> ImageCard:
    recipe = job.recipe
    return ImageCard(
        name=job.name,
        family=job.family,
        seed=job.seed,
        licence="Apache-2.0",
        source="trained by this project",
        classes=None if data.class_names is None else tuple(data.class_names),
        architecture=recipe.architecture,
        attention=recipe.attention_choice(job.variant),
        input=InputNormalisation(mean=recipe.normalisation.mean, std=recipe.normalisation.std),
        checkpoint=CheckpointFile(file=checkpoint_path.name, sha256=file_sha256(checkpoint_path)),
        training=Training(
            command=command,
            recipe=recipe.name,
            recipe_version=recipe.version,
            epochs=recipe.optimisation.epochs,
        ),
    )

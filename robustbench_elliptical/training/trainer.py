"""Train one network by a recipe: the same seed and thread count give the same weights."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.data.base import ImageData
from robustbench_elliptical.models.architecture import build_network
from robustbench_elliptical.models.attention.shared import AuxiliaryLoss
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.training.batches import epoch_batches, load_all
from robustbench_elliptical.training.optimisation import make_optimizer, make_schedule
from robustbench_elliptical.training.recipe import Recipe
from robustbench_elliptical.training.state import TrainingParts, load_state, save_state

__all__ = ["TrainingJob", "train"]

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class TrainingJob:
    """What to train: a recipe, one of its variants, a seed."""

    recipe: Recipe
    variant: str
    seed: int
    output: Path
    """Folder for the state, the checkpoint and the card."""

    @property
    def family(self) -> str:
        """Name shared by the models that differ in their seed only."""
        return f"{self.recipe.name}-{self.variant}"

    @property
    def name(self) -> str:
        """Name of the model; seed 0 has the family's."""
        return self.family if self.seed == 0 else f"{self.family}-seed{self.seed}"

    @property
    def state_path(self) -> Path:
        """Where the resumable state lies."""
        return self.output / f"{self.name}.state"

    def identity(self, images: Tensor) -> dict[str, Any]:
        """Return what a saved state must share with this job to be continued."""
        return {
            "recipe": self.recipe.model_dump_json(exclude={"attention"}),
            "attention": self.recipe.attention_choice(self.variant).model_dump_json(),
            "seed": self.seed,
            "data": hashlib.sha256(images.numpy().tobytes()).hexdigest(),
        }


def build_classifier(job: TrainingJob) -> ImageClassifier:
    """Return the freshly initialised model of a job; torch's global generator is untouched."""
    recipe = job.recipe
    size = recipe.architecture.image_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sample_key(f"training/initial/{job.seed}"))
        network = build_network(
            recipe.architecture,
            recipe.attention_choice(job.variant),
            drop_path=recipe.optimisation.drop_path,
        )
    return ImageClassifier(
        network,
        input_shape=(recipe.architecture.channels, size, size),
        num_classes=recipe.architecture.num_classes,
        mean=recipe.normalisation.mean,
        std=recipe.normalisation.std,
        name=job.name,
    )


def train(job: TrainingJob, data: ImageData, on_step: OnStep | None = None) -> ImageClassifier:
    """Train until the recipe's last epoch, from the saved state if there is one.

    Parameters
    ----------
    job
        What to train.
    data
        The training set; it is held in memory as uint8.
    on_step
        Called after every step with the steps done and the steps in all.

    Returns
    -------
    ImageClassifier
        The trained model, in evaluation mode.

    Raises
    ------
    UsageError
        If the loss stops being finite, or a saved state is broken or belongs to another job.
    """
    options = job.recipe.optimisation
    images, labels = load_all(data)
    steps = len(labels) // options.batch_size
    if steps == 0:
        raise UsageError(
            f"batch_size must be at most the {len(labels)} training images, "
            f"got {options.batch_size}; lower it in the recipe"
        )
    model = build_classifier(job)
    optimizer = make_optimizer(model.network, options)
    parts = TrainingParts(model.network, optimizer, make_schedule(optimizer, options, steps), [])
    identity = job.identity(images)
    load_state(job.state_path, parts, identity)
    for epoch in range(len(parts.losses), options.epochs):
        batches = epoch_batches(
            images, labels, options.batch_size, job.recipe.augmentation, job.seed, epoch
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(sample_key(f"training/epoch/{job.seed}/{epoch}"))
            total = 0.0
            for step, (inputs, targets) in enumerate(batches, start=1):
                total += _step(model, parts, inputs, targets, job.recipe)
                if on_step is not None:
                    on_step(epoch * steps + step, options.epochs * steps)
        parts.losses.append(total / steps)
        save_state(job.state_path, parts, identity)
    return model.eval()


def _step(
    model: nn.Module, parts: TrainingParts, inputs: Tensor, targets: Tensor, recipe: Recipe
) -> float:
    options = recipe.optimisation
    model.train()
    with AuxiliaryLoss(model) as auxiliary:
        logits = model(inputs)
    loss = functional.cross_entropy(logits, targets, label_smoothing=options.label_smoothing)
    loss = loss + auxiliary.mean()
    value = loss.item()
    if not torch.isfinite(loss):
        raise UsageError(
            f"training of recipe {recipe.name} diverged after {len(parts.losses)} epochs "
            f"(loss {value}); lower learning_rate in the recipe"
        )
    parts.optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if options.gradient_clip is not None:
        nn.utils.clip_grad_norm_(parts.network.parameters(), options.gradient_clip)
    parts.optimizer.step()
    parts.schedule.step()
    return value

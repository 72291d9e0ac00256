"""Train one language model by a recipe: the same seed and thread count give the same weights.

Every draw is keyed on the step, so a training may stop after any step and be continued.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.models.language import (
    DecoderArchitecture,
    LanguageModel,
    build_language_model,
)
from robustbench_elliptical.training.language.recipe import LanguageRecipe
from robustbench_elliptical.training.language.windows import (
    epoch_starts,
    steps_per_epoch,
    windows,
)
from robustbench_elliptical.training.optimisation import make_optimizer, make_schedule
from robustbench_elliptical.training.state import TrainingParts, load_state, save_state

__all__ = ["LanguageTrainingJob", "build_model", "train_language"]

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class LanguageTrainingJob:
    """What to train: a recipe, one of its attention variants, a seed, a vocabulary's size."""

    recipe: LanguageRecipe
    variant: str
    seed: int
    vocab_size: int
    output: Path
    """Folder for the state."""
    save_every: int = 500
    """Steps between two saves of the state; the last step is always saved."""

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

    @property
    def architecture(self) -> DecoderArchitecture:
        """The recipe's sizes with this vocabulary."""
        sizes = {**self.recipe.architecture.model_dump(), "vocab_size": self.vocab_size}
        return validated(DecoderArchitecture, sizes, f"architecture of recipe {self.recipe.name}")

    def identity(self, tokens: Tensor) -> dict[str, Any]:
        """Return what a saved state must share with this job to be continued."""
        return {
            "recipe": self.recipe.model_dump_json(),
            "attention": self.variant,
            "seed": self.seed,
            "vocabulary": self.vocab_size,
            "data": hashlib.sha256(tokens.numpy().tobytes()).hexdigest(),
        }


def build_model(job: LanguageTrainingJob) -> LanguageModel:
    """Return the freshly initialised model of a job; torch's global generator is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sample_key(f"training/initial/{job.seed}"))
        return build_language_model(job.architecture, job.recipe.attention_choice(job.variant))


def train_language(
    job: LanguageTrainingJob,
    tokens: npt.NDArray[np.int64] | Tensor,
    on_step: OnStep | None = None,
) -> LanguageModel:
    """Train until the recipe's last epoch, from the saved state if there is one.

    Parameters
    ----------
    job
        What to train.
    tokens
        The training text as one stream, int64, shape (tokens,).
    on_step
        Called after every step with the steps done and the steps in all.

    Returns
    -------
    LanguageModel
        The trained model, in evaluation mode.

    Raises
    ------
    UsageError
        If the text is too short or has tokens outside the vocabulary, the loss stops being finite,
        or a saved state is broken or belongs to another job.
    """
    options, length = job.recipe.optimisation, job.recipe.architecture.context_length
    stream = _checked(tokens, job.vocab_size)
    steps = steps_per_epoch(len(stream), length, options.batch_size)
    total = options.epochs * steps
    model = build_model(job)
    optimizer = make_optimizer(model, options)
    parts = TrainingParts(model, optimizer, make_schedule(optimizer, options, steps), [])
    identity = job.identity(stream)
    load_state(job.state_path, parts, identity)
    epoch, starts = -1, torch.empty(0)
    for step in range(len(parts.losses), total):
        if step // steps != epoch:
            epoch = step // steps
            starts = epoch_starts(len(stream), length, job.seed, epoch)
        batch = starts[step % steps * options.batch_size :][: options.batch_size]
        parts.losses.append(_step(model, parts, windows(stream, batch, length), job))
        if (step + 1) % job.save_every == 0 or step + 1 == total:
            save_state(job.state_path, parts, identity)
        if on_step is not None:
            on_step(step + 1, total)
    return model.eval()


def _checked(tokens: npt.NDArray[np.int64] | Tensor, vocab_size: int) -> Tensor:
    stream = tokens if isinstance(tokens, Tensor) else torch.tensor(tokens)
    if stream.ndim != 1 or stream.dtype != torch.int64:
        raise UsageError(
            f"training tokens must be int64 of one dimension, got {stream.dtype} of shape "
            f"{tuple(stream.shape)}"
        )
    if len(stream) and not 0 <= int(stream.min()) <= int(stream.max()) < vocab_size:
        raise UsageError(
            f"training tokens must lie in 0..{vocab_size - 1} for a vocabulary of {vocab_size} "
            f"words, got {int(stream.min())}..{int(stream.max())}"
        )
    return stream


def _step(
    model: LanguageModel,
    parts: TrainingParts,
    batch: tuple[Tensor, Tensor],
    job: LanguageTrainingJob,
) -> float:
    clip = job.recipe.optimisation.gradient_clip
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sample_key(f"training/step/{job.seed}/{len(parts.losses)}"))
        loss = model.token_losses(*batch).mean()
    value = loss.item()
    if not torch.isfinite(loss):
        raise UsageError(
            f"training of recipe {job.recipe.name} diverged after {len(parts.losses)} steps "
            f"(loss {value}); lower learning_rate in the recipe"
        )
    parts.optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    parts.optimizer.step()
    parts.schedule.step()
    return value

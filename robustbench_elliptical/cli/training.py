"""Train a model for the command line: check the request, show progress, tell what was written."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from robustbench_elliptical.cli.progress import progress_bar
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import load_data
from robustbench_elliptical.data.text import TextCorpus, load_corpus
from robustbench_elliptical.training import Recipe, TrainingJob, publish, train
from robustbench_elliptical.training.language import (
    BigramRecipe,
    LanguageRecipe,
    LanguageTrainingJob,
    PublishedLanguageModel,
    count_bigrams,
    measure_published,
    publish_language,
)
from robustbench_elliptical.training.language import train_language as run_language
from robustbench_elliptical.training.recipes import AnyRecipe

__all__ = ["TrainingRequest", "count_pairs", "train_images", "train_language"]


@dataclass(frozen=True)
class TrainingRequest:
    """What the command line asks for."""

    recipe: str
    attention: str | None
    data: str
    seed: int
    output: Path
    threads: int
    quiet: bool

    @property
    def command(self) -> str:
        """The command line that trains the model again."""
        words = ["elliptical-robust", "train", self.recipe]
        words += [] if self.attention is None else ["--attention", self.attention]
        words += ["--data", self.data]
        if self.attention is not None:
            words += ["--seed", str(self.seed), "--threads", str(self.threads)]
        return shlex.join(words)

    def check(self, recipe: AnyRecipe) -> None:
        """Refuse what the recipe can't do.

        Raises
        ------
        UsageError
            If the attention is missing, unknown or out of place, or the data is another set.
        """
        if isinstance(recipe, BigramRecipe):
            if self.attention is not None:
                raise UsageError(
                    f"recipe {recipe.name} has no attention, got --attention {self.attention}; "
                    "leave it out"
                )
            return
        if self.attention is None:
            raise UsageError(
                f"recipe {recipe.name} needs --attention, one of {', '.join(recipe.attention)}"
            )
        recipe.attention_choice(self.attention)
        if self.data.partition(":")[0] != recipe.data:
            place = ":DIR" if isinstance(recipe, Recipe) else ""
            raise UsageError(
                f"--data of recipe {recipe.name} must be {recipe.data}{place}, got {self.data!r}"
            )

    def corpus(self) -> TextCorpus:
        """Open the text; raises `UsageError` if that can't be done."""
        corpus = load_corpus(self.data)
        corpus.split("train").check()
        return corpus

    def make_output(self) -> None:
        """Create the folder, once the data is known to be good.

        Raises
        ------
        UsageError
            If it can't be created.
        """
        try:
            self.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write to --output {self.output}: {error.strerror}") from None

    def tell(self, published: PublishedLanguageModel) -> None:
        """Print what was measured and written."""
        for each in published.card.measured:
            typer.echo(
                f"{published.card.name}: perplexity {each.perplexity:.2f} of {each.n} words, "
                f"{each.data} ({each.split})"
            )
        typer.echo(f"Checkpoint: {published.checkpoint_path}")
        typer.echo(f"Vocabulary: {published.vocabulary_path}")
        typer.echo(f"Card: {published.card_path}")


@contextmanager
def _interruptible(state: Path) -> Iterator[None]:
    """Say on Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"its last saved state is in {state}" if state.exists() else "nothing was saved yet"
        typer.echo(f"Interrupted: {kept}; the same command continues", err=True)
        raise typer.Exit(130) from None


def train_images(recipe: Recipe, request: TrainingRequest) -> None:
    """Train an image classifier, or continue, and publish it."""
    assert request.attention is not None
    train_data, test_data = (load_data(request.data, split=part) for part in ("train", "test"))
    request.make_output()
    job = TrainingJob(recipe, request.attention, request.seed, request.output)
    with (
        _interruptible(job.state_path),
        progress_bar("steps", quiet=request.quiet) as advance,
    ):
        model = train(job, train_data, lambda done, total: advance(job.name, done, total))
    published = publish(job, model, test_data, request.command)
    measured = published.card.measured[0]
    typer.echo(f"{job.name}: {measured.accuracy:.2%} of {measured.n} test images")
    typer.echo(f"Checkpoint: {published.checkpoint_path}\nCard: {published.card_path}")


def train_language(recipe: LanguageRecipe, request: TrainingRequest) -> None:
    """Train a language model, or continue, publish and measure it."""
    assert request.attention is not None
    corpus = request.corpus()
    vocabulary = corpus.vocabulary()
    job = LanguageTrainingJob(
        recipe, request.attention, request.seed, len(vocabulary), request.output
    )
    tokens = corpus.split("train").tokens(vocabulary)
    request.make_output()
    with (
        _interruptible(job.state_path),
        progress_bar("steps", quiet=request.quiet) as advance,
    ):
        model = run_language(job, tokens, lambda done, total: advance(job.name, done, total))
    published = publish_language(job, model, vocabulary, (), request.command)
    request.tell(measure_published(published, corpus))


def count_pairs(recipe: BigramRecipe, request: TrainingRequest) -> None:
    """Count pairs of words, publish and measure them."""
    corpus = request.corpus()
    for split in ("valid", "test"):
        corpus.split(split).check()
    request.make_output()
    request.tell(count_bigrams(recipe, corpus, request.output, request.command))

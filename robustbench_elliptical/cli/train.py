"""`elliptical-robust train`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["train"]


def train(
    recipe: Annotated[str, typer.Argument(help="A shipped recipe's name, or a .toml file.")],
    attention: Annotated[str, typer.Option(help="Attention mechanism, one of the recipe's.")],
    data: Annotated[str, typer.Option(help="The full data set, as fashion-mnist:DIR.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, order, augmentation.")] = 0,
    output: Annotated[Path, typer.Option(help="Folder for checkpoint and card.")] = Path("trained"),
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads; another number rounds differently.")
    ] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train a small model; the same command continues an interrupted training."""
    import shlex

    import torch

    from robustbench_elliptical.cli.progress import progress_bar
    from robustbench_elliptical.core.errors import UsageError
    from robustbench_elliptical.data import load_data
    from robustbench_elliptical.training import TrainingJob, load_recipe, publish
    from robustbench_elliptical.training import train as run_training

    chosen = load_recipe(recipe)
    chosen.attention_choice(attention)
    if data.partition(":")[0] != chosen.data:
        raise UsageError(f"--data of recipe {chosen.name} must be {chosen.data}:DIR, got {data!r}")
    train_data, test_data = load_data(data, split="train"), load_data(data, split="test")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to --output {output}: {error.strerror}") from None
    torch.set_num_threads(threads)
    job = TrainingJob(chosen, attention, seed, output)
    with progress_bar("steps", quiet=quiet) as advance:
        model = run_training(job, train_data, lambda done, total: advance(job.name, done, total))
    words = ["elliptical-robust", "train", recipe, "--attention", attention, "--data", data]
    words += ["--seed", str(seed), "--threads", str(threads)]
    published = publish(job, model, test_data, shlex.join(words))
    measured = published.card.measured[0]
    typer.echo(f"{job.name}: {measured.accuracy:.2%} of {measured.n} test images")
    typer.echo(f"Checkpoint: {published.checkpoint_path}\nCard: {published.card_path}")

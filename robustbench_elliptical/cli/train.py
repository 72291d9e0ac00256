"""`elliptical-robust train`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["train"]


def train(
    recipe: Annotated[str, typer.Argument(help="A shipped recipe's name, or a .toml file.")],
    data: Annotated[
        str,
        typer.Option(
            help="The full data set: fashion-mnist:DIR for images, sotu for text; kneser-ney "
            "takes wikitext:DIR too."
        ),
    ],
    attention: Annotated[
        str | None,
        typer.Option(help="Attention variant, one of the recipe's; kneser-ney has none."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, order, augmentation.")] = 0,
    output: Annotated[Path, typer.Option(help="Folder for checkpoint and card.")] = Path("trained"),
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads; another number rounds differently.")
    ] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train a small model; the same command continues an interrupted training."""
    import torch

    from robustbench_elliptical.cli.training import (
        TrainingRequest,
        count_pairs,
        train_images,
        train_language,
    )
    from robustbench_elliptical.training import Recipe
    from robustbench_elliptical.training.language import BigramRecipe
    from robustbench_elliptical.training.recipes import find_recipe

    chosen = find_recipe(recipe)
    request = TrainingRequest(recipe, attention, data, seed, output, threads, quiet)
    request.check(chosen)
    torch.set_num_threads(threads)
    if isinstance(chosen, Recipe):
        train_images(chosen, request)
    elif isinstance(chosen, BigramRecipe):
        count_pairs(chosen, request)
    else:
        train_language(chosen, request)

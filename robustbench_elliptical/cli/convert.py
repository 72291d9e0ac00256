"""`elliptical-robust models convert`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["convert"]


def convert(
    model: Annotated[Path, typer.Argument(help="The model.pt that the authors' training saves.")],
    card: Annotated[str, typer.Option(help="Its card: a .toml file, or a shipped card's name.")],
    output: Annotated[Path, typer.Option(help="Folder for weights, vocabulary and card.")],
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Its words, one a line; needed unless they lie where the card says."),
    ] = None,
) -> None:
    """Take a language model's weights out of the authors' pickled module, without running it."""
    from robustbench_elliptical.models.conversion import convert_model

    converted = convert_model(model, card, output, vocabulary=vocabulary)
    typer.echo(f"Checkpoint: {converted.checkpoint_path}")
    typer.echo(f"Vocabulary: {converted.vocabulary_path}")
    typer.echo(f"Card: {converted.card_path}")

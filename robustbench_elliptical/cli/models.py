"""`elliptical-robust models list|show`."""

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(name="models", help="The registered models.", no_args_is_help=True)


@app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Print the cards as JSON.")] = False,
) -> None:
    """List the models that ship with the package."""
    import json

    from rich.console import Console
    from rich.table import Table

    from robustbench_elliptical.models import Card, list_models

    cards = list_models()
    if as_json:
        typer.echo(json.dumps([card.model_dump(mode="json") for card in cards], indent=2))
        return
    table = Table("model", "attention", "input", "classes", "weights", "clean accuracy")

    def clean(card: Card) -> str:
        return ", ".join(f"{each.accuracy:.1%} of {each.n}" for each in card.measured) or "unknown"

    for card in cards:
        size = card.architecture.image_size
        table.add_row(
            card.name,
            card.attention.mechanism,
            f"{card.architecture.channels}x{size}x{size}",
            str(card.architecture.num_classes),
            "shipped" if card.checkpoint else "bring your own",
            clean(card),
        )
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A model's name or the path of a card.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show a model's card."""
    from robustbench_elliptical.models import card_to_toml
    from robustbench_elliptical.models.loading import find_card

    card = find_card(name, None, None).card
    typer.echo(card.model_dump_json(indent=2) if as_json else card_to_toml(card).rstrip())

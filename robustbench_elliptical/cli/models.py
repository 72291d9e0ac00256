"""`elliptical-robust models list|show|convert`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from robustbench_elliptical.cli.convert import convert

if TYPE_CHECKING:
    from rich.table import Table

    from robustbench_elliptical.models import Card, ImageCard, LanguageCard

__all__ = ["app"]

app = typer.Typer(name="models", help="The registered models.", no_args_is_help=True)
app.command("convert")(convert)


@app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Print the cards as JSON.")] = False,
) -> None:
    """List the models that ship with the package, one table for each task."""
    import json

    from rich.console import Console

    from robustbench_elliptical.models import ImageCard, LanguageCard, list_models

    cards = list_models()
    if as_json:
        typer.echo(json.dumps([card.model_dump(mode="json") for card in cards], indent=2))
        return
    terminal = Console()
    console = terminal if terminal.is_terminal else Console(width=200)
    if images := [card for card in cards if isinstance(card, ImageCard)]:
        console.print(_image_table(images))
    if language := [card for card in cards if isinstance(card, LanguageCard)]:
        console.print(_language_table(language))


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A model's name or the path of a card.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show a model's card, and what its attention can do in comments below."""
    from robustbench_elliptical.models import card_to_toml
    from robustbench_elliptical.models.loading import find_card

    card = find_card(name, None, None).card
    if as_json:
        typer.echo(card.model_dump_json(indent=2))
        return
    typer.echo(card_to_toml(card).rstrip())
    for line in _flag_lines(card):
        typer.echo(line)


def _image_table(cards: Sequence["ImageCard"]) -> "Table":
    from rich.table import Table

    table = Table("model", "attention", "flags", "input", "classes", "weights", "clean accuracy")
    table.title = "image-classification"
    for card in cards:
        size = card.architecture.image_size
        clean = ", ".join(f"{each.accuracy:.1%} of {each.n}" for each in card.measured)
        table.add_row(
            card.name,
            card.attention.mechanism,
            _flags(card),
            f"{card.architecture.channels}x{size}x{size}",
            str(card.architecture.num_classes),
            _weights(card),
            clean or "unknown",
        )
    return table


def _language_table(cards: Sequence["LanguageCard"]) -> "Table":
    from rich.table import Table

    table = Table(
        "model", "attention", "flags", "width x layers", "words", "weights", "clean perplexity"
    )
    table.title = "language-modelling"
    for card in cards:
        clean = ", ".join(
            f"{each.perplexity:.2f} on {each.data} ({each.split})" for each in card.measured
        )
        table.add_row(
            card.name,
            _attention(card),
            _flags(card),
            _size(card),
            str(card.architecture.vocab_size),
            _weights(card),
            clean or "unknown",
        )
    return table


def _attention(card: "LanguageCard") -> str:
    """Return the mechanism and the settings that decide what its perplexity means."""
    if card.attention is None:
        return "none"
    settings = card.attention.settings
    stated = [f"{key}={settings[key]}" for key in ("metric_scope", "scale") if key in settings]
    return " ".join([card.attention.mechanism, *stated])


def _flags(card: "Card") -> str:
    """Return the flags of the attention that are set; only a language model has a causal mask."""
    from robustbench_elliptical.models.attention import flag_words

    if card.attention is None:
        return ""
    mechanism, settings = card.attention.mechanism, card.attention.settings
    causal_mask = card.task == "language-modelling"
    return ", ".join(flag_words(mechanism, settings, causal_mask=causal_mask))


def _flag_lines(card: "Card") -> list[str]:
    """Return every flag of the attention as a TOML comment."""
    from robustbench_elliptical.models.attention import flag_notes

    if card.attention is None:
        return []
    notes = flag_notes(card.attention.mechanism, card.attention.settings)
    lines = [
        f"# {each.word}: {each.value}" + f" ({each.meaning})" * bool(each.meaning) for each in notes
    ]
    return ["", "# Flags of the attention:", *lines]


def _size(card: "LanguageCard") -> str:
    sizes = card.architecture
    if sizes.family == "decoder":
        return f"{sizes.d_model}x{sizes.layers}"
    return f"{sizes.pairs} pairs"


def _weights(card: "Card") -> str:
    return "shipped" if card.checkpoint else "bring your own"

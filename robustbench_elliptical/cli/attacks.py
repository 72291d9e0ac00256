"""`elliptical-robust attacks list|show`."""

from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(name="attacks", help="The registered attacks.", no_args_is_help=True)


@app.command("list")
def list_attacks(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the attacks and what they ask of a model."""
    import json

    from rich.console import Console
    from rich.table import Table

    from robustbench_elliptical.attacks import ATTACKS

    entries = [ATTACKS[name] for name in ATTACKS]
    if as_json:
        fields = ("name", "knowledge", "norms", "summary", "paper")
        typer.echo(
            json.dumps([{key: getattr(each, key) for key in fields} for each in entries], indent=2)
        )
        return
    table = Table("attack", "knowledge", "norms", "what it does")
    for entry in entries:
        table.add_row(entry.name, entry.knowledge, ", ".join(entry.norms), entry.summary)
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="An attack's name.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print its settings as a JSON schema.")
    ] = False,
) -> None:
    """Show an attack's settings, their defaults and its documentation."""
    import inspect
    import json

    from robustbench_elliptical.attacks import ATTACKS

    entry = ATTACKS[name]
    if as_json:
        typer.echo(json.dumps(entry.settings.model_json_schema(), indent=2))
        return
    typer.echo(f"{entry.name} ({entry.knowledge}; {', '.join(entry.norms)})\n{entry.paper}\n")
    for key, setting in entry.settings.model_fields.items():
        typer.echo(f"  {key}={setting.get_default()}")
    typer.echo(f"\n{inspect.getdoc(entry.function)}")

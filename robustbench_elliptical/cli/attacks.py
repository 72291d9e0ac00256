"""`elliptical-robust attacks list|show`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from robustbench_elliptical.attacks.choice import Entry

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
    from robustbench_elliptical.attacks.text import TEXT_ATTACKS

    entries = [*(ATTACKS[name] for name in ATTACKS), *(TEXT_ATTACKS[name] for name in TEXT_ATTACKS)]
    if as_json:
        fields = ("name", "knowledge", "summary", "paper")
        rows = [
            {key: getattr(each, key) for key in fields} | {"size": _size(each)} for each in entries
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("attack", "knowledge", "size", "what it does")
    for entry in entries:
        table.add_row(entry.name, entry.knowledge, _size(entry), entry.summary)
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
    from robustbench_elliptical.attacks.text import TEXT_ATTACKS
    from robustbench_elliptical.core.errors import UnknownNameError

    if name not in ATTACKS and name not in TEXT_ATTACKS:
        raise UnknownNameError("attack", name, [*ATTACKS, *TEXT_ATTACKS])
    entry = ATTACKS[name] if name in ATTACKS else TEXT_ATTACKS[name]
    if as_json:
        typer.echo(json.dumps(entry.settings.model_json_schema(), indent=2))
        return
    typer.echo(f"{entry.name} ({entry.knowledge}; {_size(entry)})")
    typer.echo(f"{entry.paper}\n" if entry.paper else "")
    for key, setting in entry.settings.model_fields.items():
        default = "must be given" if setting.is_required() else setting.get_default()
        typer.echo(f"  {key}={default}")
    typer.echo(f"\n{inspect.getdoc(entry.function)}")


def _size(entry: "Entry") -> str:
    """Return how the size of the perturbation is given."""
    norms = getattr(entry, "norms", None)
    return f"epsilon, {' or '.join(norms)}" if norms else "rate of words"

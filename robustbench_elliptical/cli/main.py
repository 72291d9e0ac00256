"""`elliptical-robust`: assembles the commands; nothing heavy is imported at the top.

Exit codes: 0 done, 2 bad input (one sentence on standard error), 130 interrupted by Ctrl-C or by
SIGTERM, which schedulers send (finished parts are kept); `check` adds 1 regressed and 3
inconclusive or incomplete.
"""

import signal
import sys
from typing import Annotated

import typer

from robustbench_elliptical import __version__
from robustbench_elliptical.cli.attacks import app as attacks_app
from robustbench_elliptical.cli.baseline import baseline
from robustbench_elliptical.cli.check import check
from robustbench_elliptical.cli.evaluate import evaluate
from robustbench_elliptical.cli.models import app as models_app
from robustbench_elliptical.cli.report import report
from robustbench_elliptical.cli.train import train
from robustbench_elliptical.core.errors import UsageError

__all__ = ["app", "run"]

app = typer.Typer(
    name="elliptical-robust",
    help="Evaluate attention models under attack, with numbers that can be trusted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("eval")(evaluate)
app.add_typer(models_app)
app.add_typer(attacks_app)
app.command("train")(train)
app.command("report")(report)
app.command("baseline")(baseline)
app.command("check")(check)


@app.command("version")
def version(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON, with the libraries that compute.")
    ] = False,
) -> None:
    """Print the version."""
    if as_json:
        import json

        from robustbench_elliptical.evaluation.provenance import versions

        typer.echo(json.dumps(versions()))
    else:
        typer.echo(__version__)


def run() -> None:
    """Run the command line; the console script's entry point."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except UsageError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"Error: the operating system refused: {error}", err=True)
        sys.exit(2)

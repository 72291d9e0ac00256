"""`elliptical-robust eval`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["evaluate"]


def evaluate(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model as NAME,key=value,...; repeatable. A card's name or file, timm:NAME, or a "
            "checkpoint with card=FILE. Default: deit-micro-softmax and deit-micro-elliptical."
        ),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="Attack as NAME:key=value,...; repeatable; clean for none. A noise control is "
            "added. Default: fgsm, pgd and spsa."
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="Size in [0, 1] pixels, as 8/255: the largest change of a pixel (at most 1), or "
            "for norm=l2 the Euclidean length. Repeatable. Default: 8/255."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="fashion-mnist[:DIR], imagefolder:DIR or npz:FILE. Default: fashion-mnist."
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(help="Number of samples, class-balanced and seeded, or all. Default: 200."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of samples and of every attack. Default: 0.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Samples attacked together. Default: 100.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="A torch device such as cuda. Default: cpu.")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(help="A shipped suite or a .toml file; other options replace what it says."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="New folder for the results. Default: runs/<time>-<models>."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print results.json, no table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Evaluate models, clean and under attack.

    Prints accuracy with its 95 % interval and writes results.json, samples.csv and table.md.
    Without options it compares the shipped softmax and Elliptical models on embedded images.
    """
    from robustbench_elliptical.cli.running import run_evaluation
    from robustbench_elliptical.core.settings import validated
    from robustbench_elliptical.evaluation import EvaluationSettings, load_suite

    given = {
        "models": model,
        "attacks": attack,
        "epsilons": epsilon,
        "data": data,
        "limit": limit,
        "seed": seed,
        "batch_size": batch_size,
        "device": device,
    }
    stated = {key: value for key, value in given.items() if value is not None and value != []}
    base = {} if suite is None else load_suite(suite).evaluation
    settings = validated(EvaluationSettings, {**base, **stated}, "option")
    complete = run_evaluation(settings, output, as_json=as_json, quiet=quiet)
    if not complete:
        raise typer.Exit(130)

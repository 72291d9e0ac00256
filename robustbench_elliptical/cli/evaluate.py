"""`elliptical-robust eval`."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["evaluate"]


def evaluate(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model as NAME,key=value,...; repeatable. A card's name or file, timm:NAME, "
            "hf:DIR, or a checkpoint with card=FILE. Default: shipped softmax and Elliptical ones."
        ),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="Attack as NAME:key=value,...; repeatable; clean for none. Default: fgsm, pgd "
            "and spsa for images (a noise control is added), word-swap for language models."
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="Size in [0, 1] pixels, as 8/255: the largest change of a pixel (at most 1), or "
            "for norm=l2 the Euclidean length. Repeatable. Default: 8/255."
        ),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            help="Share of the words that a text attack swaps, as 2.5% or 0.025; repeatable. "
            "Default: 1%, 2.5%, 5% and 10%."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Images: fashion-mnist[:DIR], imagefolder:DIR or npz:FILE. Text: sotu, "
            "wikitext:DIR or text:FILE. One of each at most. Default: fashion-mnist and sotu."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Part of the text: train, valid or test. Default: test.")
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            help="Number of samples (images, class-balanced, or documents), drawn by the seed, or "
            "all. Default: 200."
        ),
    ] = None,
    document_words: Annotated[
        str | None,
        typer.Option(help="Words read of each document, or all. Default: 2000."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Tokens of context at most. Default: the model's own."),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            help="Tokens by which the window moves; 1 as the paper. Default: a quarter of the "
            "window."
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="document: each starts afresh; stream: after the one before. Default: document."
        ),
    ] = None,
    prefix: Annotated[
        bool | None,
        typer.Option(
            "--prefix/--no-prefix",
            help="Whether a line end stands before the first word, so that it is scored too. "
            "Default: it does.",
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            help="Images on which the inside of each model is measured, for reports; 0 for none. "
            "Default: 8."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of samples and of every attack. Default: 0.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Images or windows together. Default: 100.")
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

    Prints accuracy or perplexity with 95 % intervals and writes results.json, table.md and the
    outcome of every sample. Without options it compares the shipped softmax and Elliptical models
    on embedded images, with --attack word-swap on embedded text.
    """
    from robustbench_elliptical.cli.running import run_evaluation
    from robustbench_elliptical.core.settings import validated
    from robustbench_elliptical.evaluation import EvaluationSettings, load_suite
    from robustbench_elliptical.evaluation.settings import option_name

    given = {
        "models": model,
        "attacks": attack,
        "epsilons": epsilon,
        "rates": rate,
        "data": data,
        "split": split,
        "limit": limit,
        "document_words": document_words,
        "window": window,
        "stride": stride,
        "context": context,
        "prefix": prefix,
        "examples": examples,
        "seed": seed,
        "batch_size": batch_size,
        "device": device,
    }
    stated = {key: value for key, value in given.items() if value is not None and value != []}
    base = {} if suite is None else load_suite(suite).evaluation
    settings = validated(EvaluationSettings, {**base, **stated}, "option", spelt=option_name)
    complete = run_evaluation(settings, output, as_json=as_json, quiet=quiet)
    if not complete:
        raise typer.Exit(130)

"""Red flags that follow from what an attention mechanism is, whatever the task."""

from collections.abc import Iterable, Iterator

from robustbench_elliptical.models.attention import Capabilities, capabilities_of
from robustbench_elliptical.models.description import LanguageDescription, ModelDescription
from robustbench_elliptical.results import Finding

__all__ = ["capability_findings"]


def capability_findings(
    models: Iterable[ModelDescription | LanguageDescription], batch_size: int
) -> Iterator[Finding]:
    """Say where a random draw or the rest of the batch decides outcomes.

    Parameters
    ----------
    models
        Of a network without a registered mechanism nothing is known, so nothing is said.
    batch_size
        How many samples the evaluation put together.
    """
    for model in models:
        if model.attention is not None:
            flags = capabilities_of(model.attention, model.attention_settings)
            yield from _of_one(model, flags, batch_size)


def _of_one(
    model: ModelDescription | LanguageDescription, flags: Capabilities, batch_size: int
) -> Iterator[Finding]:
    if flags.batch_coupled:
        yield Finding(
            id="batch-coupled",
            severity="warning",
            model=model.name,
            attack=None,
            evidence=f"Its {model.attention} attention, set as released, lets the other samples of "
            f"a batch change what a sample gets; there were up to {batch_size} together.",
            remedy="Its numbers hold for this batch size and order alone. Leave the released "
            "setting out: `models show` names it.",
        )
    if flags.stochastic:
        yield Finding(
            id="draw-is-frozen",
            severity="notice",
            model=model.name,
            attack=None,
            evidence=f"Its {model.attention} attention draws at random for each sample. It is "
            "judged by one draw, frozen by the seed in its settings and by the sample.",
            remedy="Attacks know that draw unless they state draws: run pgd:draws=10 beside them, "
            "which averages over ten others.",
        )

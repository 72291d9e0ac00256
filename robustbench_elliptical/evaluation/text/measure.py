"""The clean perplexity of a model on a whole text, for its card."""

from robustbench_elliptical.data.text import TextSplit
from robustbench_elliptical.evaluation.modes import frozen
from robustbench_elliptical.evaluation.text.scoring import Protocol, score
from robustbench_elliptical.models import EvaluatedLanguageModel, PerplexityMeasurement
from robustbench_elliptical.results.perplexity import perplexity

__all__ = ["measure_clean"]

_BATCH = 64


def measure_clean(model: EvaluatedLanguageModel, text: TextSplit) -> PerplexityMeasurement:
    """Measure as `eval` does by default, but every document whole.

    Raises
    ------
    UsageError
        If the text has no words that the model knows.
    """
    text.check(model.vocabulary)
    protocol = Protocol.of(
        model,
        window=None,
        stride=None,
        context="document",
        prefix=True,
        batch_size=_BATCH,
        device="cpu",
    )
    loss, targets = 0.0, 0
    with frozen(model):
        for document in text:
            (found,) = score(model, [model.encode(document).tokens], protocol)
            loss += float(found.losses.sum())
            targets += len(found.losses)
    prefix = protocol.prefix
    return PerplexityMeasurement(
        data=text.corpus.name.partition(":")[0],
        split=text.split,
        n=targets,
        perplexity=round(perplexity(loss, targets), 4),
        window=protocol.window,
        stride=protocol.stride,
        context=protocol.context,
        prefix=model.vocabulary.words[prefix] if model.vocabulary and prefix is not None else None,
    )

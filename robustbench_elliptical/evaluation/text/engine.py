"""Score one model on some documents: clean, then every contamination at every rate."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text import Lexicon, NonFiniteLossError, Swaps, TextChoice
from robustbench_elliptical.data.text import Document
from robustbench_elliptical.evaluation.settings import CLEAN
from robustbench_elliptical.evaluation.text.oracle import DocumentOracle
from robustbench_elliptical.evaluation.text.plan import PlannedSwap
from robustbench_elliptical.evaluation.text.scoring import Protocol, TextScore, score
from robustbench_elliptical.evaluation.text.table import DocumentRow, DocumentTable, TextUnit
from robustbench_elliptical.models import EncodedDocument, EvaluatedLanguageModel

__all__ = ["Reader", "evaluate_documents"]

OnUnit = Callable[[TextUnit], None]


class Reader(NamedTuple):
    """A model, how it reads, and what attacks draw from."""

    model: EvaluatedLanguageModel
    protocol: Protocol
    lexicon: Lexicon | None
    """The vocabulary of every model-free attack, one for the whole run: all models read the same
    words."""
    seed: int
    """Of every attack."""


class _Contaminated(NamedTuple):
    """A document as an attack left it."""

    encoded: EncodedDocument
    swapped_words: npt.NDArray[np.bool_]
    eligible: int
    forwards: int = 0
    backwards: int = 0
    failure: str = ""


def evaluate_documents(
    reader: Reader,
    documents: Sequence[Document],
    attacks: Sequence[PlannedSwap],
    table: DocumentTable,
    on_unit: OnUnit,
) -> None:
    """Evaluate documents that are read together.

    Parameters
    ----------
    reader
        The model is in evaluation mode.
    documents
        Each has words.
    attacks
        What to run; those that ask a model which has no gradients are left out.
    table
        Receives the records, a unit's whole or not at all.
    on_unit
        Called after every unit.
    """
    clean = [_clean(reader.model.encode(each), len(each.words)) for each in documents]
    _record(reader, CLEAN, 0.0, documents, clean, table, on_unit, time.perf_counter())
    for attack in attacks:
        for rate, contaminated, start in _contaminations(reader, documents, attack):
            label = attack.choice.label
            _record(reader, label, rate, documents, contaminated, table, on_unit, start)


def _contaminations(
    reader: Reader, documents: Sequence[Document], attack: PlannedSwap
) -> Iterator[tuple[float, list[_Contaminated], float]]:
    if attack.choice.knowledge == "none":
        for rate in attack.rates:
            start = time.perf_counter()
            yield rate, [_swapped(reader, each, attack.choice, rate) for each in documents], start
    elif reader.model.differentiable:
        begin: list[npt.NDArray[np.int64] | None] = [None] * len(documents)
        for rate in attack.rates:
            start = time.perf_counter()
            found = [
                _attacked(reader, each, attack.choice, rate, before)
                for each, before in zip(documents, begin, strict=True)
            ]
            begin = [None if each.failure else each.encoded.tokens for each in found]
            yield rate, found, start


def _clean(encoded: EncodedDocument, words: int) -> _Contaminated:
    return _Contaminated(encoded, np.zeros(words, dtype=np.bool_), 0)


def _swapped(reader: Reader, document: Document, choice: TextChoice, rate: float) -> _Contaminated:
    """Contaminate words without asking the model."""
    found = choice.run(
        document.words,
        document_id=document.id,
        rate=rate,
        lexicon=reader.lexicon,
        seed=reader.seed,
    )
    return _Contaminated(
        reader.model.encode(document, found.words), found.swapped, _eligible(found)
    )


def _attacked(
    reader: Reader,
    document: Document,
    choice: TextChoice,
    rate: float,
    start: npt.NDArray[np.int64] | None,
) -> _Contaminated:
    """Contaminate tokens by an attack that asks the model; its solution grows with the rate."""
    vocabulary = reader.model.vocabulary
    assert vocabulary is not None
    encoded = reader.model.encode(document)
    oracle = DocumentOracle(reader.model, reader.protocol)
    try:
        found = choice.run_tokens(
            encoded.tokens,
            document_id=document.id,
            rate=rate,
            lexicon=vocabulary,
            oracle=oracle,
            seed=reader.seed,
            start=start,
        )
    except NonFiniteLossError as error:
        return _clean(encoded, len(document.words))._replace(failure=str(error))
    words = [
        vocabulary.words[token] if swapped else word
        for word, token, swapped in zip(
            document.words, found.tokens.tolist(), found.swapped.tolist(), strict=True
        )
    ]
    return _Contaminated(
        reader.model.encode(document, words),
        found.swapped,
        _eligible(found),
        oracle.forwards,
        oracle.backwards,
    )


def _eligible(found: Swaps) -> int:
    return int(np.count_nonzero(found.eligible))


def _record(
    reader: Reader,
    attack: str,
    rate: float,
    documents: Sequence[Document],
    contaminated: Sequence[_Contaminated],
    table: DocumentTable,
    on_unit: OnUnit,
    start: float,
) -> None:
    unit = TextUnit(reader.model.name, attack, rate)
    tokens = [each.encoded.tokens for each in contaminated]
    scores = score(reader.model, tokens, reader.protocol)
    rows = [
        _row(unit, document, each, found)
        for document, each, found in zip(documents, contaminated, scores, strict=True)
    ]
    table.add(rows, time.perf_counter() - start)
    on_unit(unit)


def _row(
    unit: TextUnit, document: Document, contaminated: _Contaminated, found: TextScore
) -> DocumentRow:
    encoded = contaminated.encoded
    owners = encoded.word_of_token[found.skipped :]
    clean = ~contaminated.swapped_words[owners]
    reason = contaminated.failure or _failure(found)
    return DocumentRow(
        model=unit.model,
        attack=unit.attack,
        rate=unit.rate,
        document=document.id,
        outcome="failed" if reason else "scored",
        targets=len(found.losses),
        loss=float("nan") if reason else float(found.losses.sum()),
        clean_targets=int(np.count_nonzero(clean)),
        clean_target_loss=float("nan") if reason else float(found.losses[clean].sum()),
        words=len(np.unique(owners)),
        bytes=encoded.bytes,
        eligible=contaminated.eligible,
        swapped=int(np.count_nonzero(contaminated.swapped_words)),
        forwards=contaminated.forwards + found.forwards,
        backwards=contaminated.backwards,
        reason=reason,
    )


def _failure(found: TextScore) -> str:
    if not len(found.losses):
        return "no word can be scored"
    bad = np.count_nonzero(~np.isfinite(found.losses))
    return f"{bad} of {len(found.losses)} losses are not finite" if bad else ""

"""Language models that were evaluated on the same text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.reports.tables import format_rate
from robustbench_elliptical.results import (
    Finding,
    ModelRecord,
    PerplexityProtocol,
    PerplexitySummary,
    TextAttackRecord,
    TextRecord,
)

__all__ = ["TextBlock", "TextEntry", "TextUnit", "read_documents"]

_NUMBERS = ("loss", "targets", "clean_target_loss", "clean_targets", "words", "bytes")


class TextUnit(NamedTuple):
    """A contamination at a rate, or `clean`."""

    attack: str
    rate: float

    @property
    def amount(self) -> float:
        """The rate."""
        return self.rate

    @property
    def title(self) -> str:
        """Return ``word-swap 2.5 %``."""
        return f"{self.attack} {format_rate(self.rate)}" if self.rate else self.attack


@dataclass
class TextEntry:
    """A model of a block."""

    label: str
    """Its name, with that of the run where another model of the block is called so."""
    record: ModelRecord
    """What it is."""
    data: TextRecord
    """What it was evaluated on."""
    protocol: PerplexityProtocol
    """How its perplexity was measured."""
    runs: list[Run]
    """Where it was evaluated: several where their attacks were merged."""
    summaries: dict[TextUnit, PerplexitySummary]
    """Perplexities and costs by unit."""
    documents: dict[TextUnit, pd.DataFrame]
    """Documents that were scored, by id: loss, targets, clean_target_loss, clean_targets, words,
    bytes."""

    @property
    def way(self) -> tuple[object, ...]:
        """What two models must share to be compared on equal terms; their tokens may differ."""
        used = self.protocol
        return used.window, used.stride, used.context, used.prefix is None


@dataclass
class TextBlock:
    """Models on the same documents."""

    name: str
    """Name of the data and its part."""
    entries: list[TextEntry]
    """The models, in the order given."""
    attacks: Mapping[str, TextAttackRecord]
    """By label, in the order given."""
    findings: list[tuple[Run, TextEntry | None, Finding]]
    """Red flags with the run that raised them and the model they are about."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know before the numbers: interruptions, merged runs."""

    def units(self) -> list[TextUnit]:
        """Return every unit: clean, then by attack and rate."""
        order = ["clean", *self.attacks]
        found = dict.fromkeys(unit for entry in self.entries for unit in entry.summaries)
        return sorted(found, key=lambda unit: (order.index(unit.attack), unit.rate))


def read_documents(run: Run) -> pd.DataFrame:
    """Read the rows of `documents.csv` that were scored.

    Raises
    ------
    UsageError
        If the file can't be read, lacks a column or has a document twice.
    """
    path = run.folder / "documents.csv"
    names = ["model", "attack", "rate", "document"]
    try:
        rows = pd.read_csv(
            path,
            usecols=[*names, "outcome", *_NUMBERS],
            dtype={"model": "category", "attack": "category", "document": "object"},
            keep_default_na=False,
            na_values={name: [""] for name in ("loss", "clean_target_loss")},
        )
    except OSError as error:
        raise UsageError(f"cannot read results {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"results {path} are broken: {error}") from None
    rows["rate"] = rows["rate"].round(12)
    if rows.duplicated(names).any():
        raise UsageError(f"results {path} are broken: a document stands twice in one cell")
    return rows[rows["outcome"] == "scored"]

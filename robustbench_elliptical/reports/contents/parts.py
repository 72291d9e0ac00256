"""The parts of a report. Texts are as they came; every format escapes them for itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd
from matplotlib.figure import Figure as Drawing

__all__ = [
    "Cell",
    "Column",
    "Fact",
    "Facts",
    "Figure",
    "NumberedFinding",
    "Report",
    "Section",
    "Table",
]


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table."""

    text: str = ""
    """The number, or a word."""
    detail: str = ""
    """Its interval and what else belongs to it."""
    best: bool = False
    """Whether the paired test says that no other model is as good."""
    marks: tuple[str, ...] = ()
    """Numbers of the findings about it."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    label: str
    """Its heading, with the unit."""
    numeric: bool = True
    """Whether it is set flush right."""


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row is its heading."""

    name: str
    """Name of its file and anchor: ASCII letters, digits and hyphens."""
    title: str
    """Caption."""
    columns: tuple[Column, ...]
    """Headings, one a cell of each row."""
    rows: tuple[tuple[Cell, ...], ...]
    """Cells."""
    notes: tuple[str, ...] = ()
    """How to read it."""
    primary: bool = False
    """Whether it holds the measurements themselves, which the findings are about."""

    beside: bool = False
    """Whether the details of its cells stand beside the numbers, not below: for long tables."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Numbers of the findings that stand in it, in the order of the findings."""
        found = {mark for row in self.rows for cell in row for mark in cell.marks}
        return tuple(sorted(found, key=lambda mark: int(mark[1:])))


@dataclass(frozen=True)
class Figure:
    """A figure; drawn for the column of a paper."""

    name: str
    """Name of its files and anchor."""
    title: str
    """Caption."""
    description: str
    """What is to be seen, for those who can't see it."""
    draw: Callable[[], Drawing]
    """Draws it by matplotlib, in the style that is set."""


@dataclass(frozen=True)
class NumberedFinding:
    """A red flag, with the number that stands at the cells it is about."""

    mark: str
    """``F1``."""
    severity: str
    """error, warning or notice."""
    rule: str
    """Name of the rule that found it."""
    subject: str
    """Model, attack and size."""
    evidence: str
    """What was seen."""
    remedy: str
    """What to do."""


@dataclass(frozen=True)
class Fact:
    """A line of the provenance."""

    term: str
    text: str


@dataclass(frozen=True)
class Facts:
    """Facts about one thing."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Section:
    """What is said about models on the same data."""

    name: str
    """Anchor and prefix of its files."""
    title: str
    """Heading."""
    warnings: tuple[str, ...]
    """What must be known before the numbers."""
    tables: tuple[Table, ...]
    """In the order shown."""
    findings: tuple[NumberedFinding, ...]
    """Shown after the first tables."""
    figures: tuple[Figure, ...]
    """In the order shown."""
    frames: Mapping[str, pd.DataFrame]
    """The numbers of the tables and more, in full precision, by name."""

    def explained(self, table: Table) -> tuple[NumberedFinding, ...]:
        """Return the findings whose numbers stand in a table."""
        return tuple(each for each in self.findings if each.mark in table.marks)

    def new_notes(self, table: Table) -> tuple[str, ...]:
        """Return the notes of a table that no later table of its kind repeats."""
        place = self.tables.index(table)
        later = {
            note
            for each in self.tables[place + 1 :]
            if each.primary == table.primary
            for note in each.notes
        }
        return tuple(note for note in table.notes if note not in later)

    def unplaced(self) -> tuple[NumberedFinding, ...]:
        """Return the findings whose numbers stand in no table."""
        shown = {mark for table in self.tables for mark in table.marks}
        return tuple(each for each in self.findings if each.mark not in shown)


@dataclass(frozen=True)
class Report:
    """Everything a report says."""

    title: str
    runs: tuple[str, ...]
    """The folders it is about."""
    sections: tuple[Section, ...]
    """One for each set of data."""
    provenance: tuple[Facts, ...] = field(default=())
    """How to rerun."""

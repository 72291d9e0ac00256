"""Red flags, numbered, and the places where the numbers stand that they are about."""

from collections.abc import Iterator, Mapping, Sequence

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.reports.blocks import ImageBlock, TextBlock
from robustbench_elliptical.reports.contents.parts import NumberedFinding
from robustbench_elliptical.reports.tables import format_rate
from robustbench_elliptical.results import Finding

__all__ = ["Marks", "mark_text", "number_findings"]

Marks = Mapping[tuple[str, str, float], tuple[str, ...]]
"""Numbers of findings by model, attack and size (epsilon or rate; 0 for none); an empty attack is
the model as a whole."""

_ORDER = ("error", "warning", "notice")


def number_findings(
    block: ImageBlock | TextBlock, numbers: Iterator[int]
) -> tuple[list[NumberedFinding], Marks]:
    """Give the findings of a block numbers, most severe first, and say where their marks stand."""
    numbered: list[NumberedFinding] = []
    marks: dict[tuple[str, str, float], tuple[str, ...]] = {}
    entries = sorted(block.findings, key=lambda each: _ORDER.index(each[2].severity))
    for _, entry, finding in entries:
        label = finding.model if entry is None else entry.label
        mark = f"F{next(numbers)}"
        numbered.append(_numbered(mark, label, finding))
        for place in _places(block, label, finding):
            marks[place] = (*marks.get(place, ()), mark)
    return numbered, marks


def mark_text(marks: Sequence[str]) -> str:
    """Return marks as the frames hold them: ``F1 F3``."""
    return " ".join(marks)


def _numbered(mark: str, label: str, finding: Finding) -> NumberedFinding:
    subject = [label, finding.attack or ""]
    subject += [format_epsilon(finding.epsilon)] if finding.epsilon else []
    subject += [format_rate(finding.rate)] if finding.rate else []
    return NumberedFinding(
        mark=mark,
        severity=finding.severity,
        rule=finding.id,
        subject=" ".join(word for word in subject if word),
        evidence=finding.evidence,
        remedy=finding.remedy,
    )


def _places(
    block: ImageBlock | TextBlock, label: str, finding: Finding
) -> list[tuple[str, str, float]]:
    """Return the cells a finding is about: one size of an attack, or all of them."""
    if finding.attack is None:
        return [(label, "", 0.0)]
    size = finding.epsilon if isinstance(block, ImageBlock) else finding.rate
    if size is not None:
        return [(label, finding.attack, round(size, 12))]
    sizes = (unit.amount for unit in block.units() if unit.attack == finding.attack)
    return [(label, finding.attack, each) for each in dict.fromkeys(sizes)]

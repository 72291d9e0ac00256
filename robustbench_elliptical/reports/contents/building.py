"""Put a report together from blocks."""

from collections.abc import Iterator, Sequence
from itertools import count

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock, Run, TextBlock
from robustbench_elliptical.reports.contents import accuracy, perplexity
from robustbench_elliptical.reports.contents.costs import cost_frame, cost_tables
from robustbench_elliptical.reports.contents.differences import difference_table, ratio_table
from robustbench_elliptical.reports.contents.findings import Marks, mark_text, number_findings
from robustbench_elliptical.reports.contents.inside import inside_frames
from robustbench_elliptical.reports.contents.inside_table import inside_table
from robustbench_elliptical.reports.contents.pairing import check_against
from robustbench_elliptical.reports.contents.parts import Report, Section, Table
from robustbench_elliptical.reports.contents.provenance import provenance
from robustbench_elliptical.reports.contents.published import published_frame, published_table
from robustbench_elliptical.reports.contents.seeds import family_frame, pooled_frame, seed_tables
from robustbench_elliptical.reports.contents.text_seeds import (
    family_ratio_frame,
    pooled_perplexity_frame,
    text_seed_tables,
)
from robustbench_elliptical.reports.contents.wording import slug
from robustbench_elliptical.reports.figures import image_figures, inside_figures, text_figures

__all__ = ["build_report"]


def build_report(
    runs: Sequence[Run], blocks: Sequence[ImageBlock | TextBlock], against: str | None = None
) -> Report:
    """Compute everything a report says about the blocks of some runs.

    Parameters
    ----------
    runs, blocks
        What was read, and how it belongs together.
    against
        The model that all others are compared with; none: every two.

    Raises
    ------
    UnknownNameError
        If no block has that model.
    """
    check_against(against, [entry.label for block in blocks for entry in block.entries])
    numbers = count(1)
    sections: list[Section] = []
    for block in blocks:
        name = _name(block, [section.name for section in sections])
        if isinstance(block, ImageBlock):
            sections.append(_images(block, name, numbers, against))
        else:
            sections.append(_text(block, name, numbers, against))
    return Report(
        title="Robustness report",
        runs=tuple(run.label for run in runs),
        sections=tuple(sections),
        provenance=provenance(runs),
    )


def _name(block: ImageBlock | TextBlock, taken: Sequence[str]) -> str:
    base = slug(block.name.split("/")[-1])
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _images(block: ImageBlock, name: str, numbers: Iterator[int], against: str | None) -> Section:
    findings, marks = number_findings(block, numbers)
    comparisons = accuracy.comparison_frame(block, against)
    measured = accuracy.accuracy_frame(block)
    measured["best"] = accuracy.best_models(measured, comparisons)
    measured["findings"] = _findings(measured, "epsilon", marks)
    pooled, families, costs = pooled_frame(block), family_frame(block), cost_frame(block)
    published, inside = published_frame(block, measured), inside_frames(block)
    tables = [
        *accuracy.accuracy_tables(block, measured, marks, name),
        difference_table(comparisons, measured, name),
        *seed_tables(block, pooled, families, name),
        published_table(published, name),
        inside_table(block, inside, name),
        *cost_tables(block, costs, name),
    ]
    figures = [*image_figures(block, measured, costs, name), *inside_figures(block, inside, name)]
    return Section(
        name=name,
        title=f"Images: {block.name}, n = {len(block.samples)}",
        warnings=tuple(block.notes),
        tables=_there(tables),
        findings=tuple(findings),
        figures=tuple(figures),
        frames=_filled(
            {
                "accuracy": measured,
                "differences": comparisons,
                "seeds": pooled,
                "seed-differences": families,
                "published": published,
                "cost": costs,
                **inside,
            }
        ),
    )


def _text(block: TextBlock, name: str, numbers: Iterator[int], against: str | None) -> Section:
    findings, marks = number_findings(block, numbers)
    comparisons = perplexity.ratio_frame(block, against)
    measured = perplexity.perplexity_frame(block)
    measured["best"] = perplexity.best_models(measured, comparisons)
    measured["findings"] = _findings(measured, "rate", marks)
    pooled, families = pooled_perplexity_frame(block), family_ratio_frame(block)
    costs = cost_frame(block)
    published = published_frame(block, measured)
    tables = [
        *perplexity.perplexity_tables(block, measured, marks, name),
        ratio_table(comparisons, measured, name),
        *text_seed_tables(pooled, families, name),
        published_table(published, name),
        *cost_tables(block, costs, name),
    ]
    documents = max((entry.data.documents for entry in block.entries), default=0)
    return Section(
        name=name,
        title=f"Text: {block.name}, {documents} documents",
        warnings=tuple(block.notes),
        tables=_there(tables),
        findings=tuple(findings),
        figures=tuple(text_figures(block, measured, name)),
        frames=_filled(
            {
                "perplexity": measured,
                "differences": comparisons,
                "seeds": pooled,
                "seed-differences": families,
                "published": published,
                "cost": costs,
            }
        ),
    )


def _findings(measured: pd.DataFrame, size: str, marks: Marks) -> list[str]:
    """Return the marks at each row: those of its cell and those of the model as a whole."""
    return [
        mark_text(marks.get((model, "", 0.0), ()) + marks.get((model, attack, value), ()))
        for model, attack, value in zip(
            measured["model"], measured["attack"], measured[size], strict=True
        )
    ]


def _there(tables: Sequence[Table | None]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table is not None)


def _filled(frames: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    return {name: frame for name, frame in frames.items() if not frame.empty}

"""Figures of the inside of the models."""

from collections.abc import Iterator, Mapping

import pandas as pd

from robustbench_elliptical.reports.blocks import ImageBlock
from robustbench_elliptical.reports.contents.inside import MOST_MODELS, joint_strongest
from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.figures.depth import depth_figures
from robustbench_elliptical.reports.figures.gallery import gallery_figures
from robustbench_elliptical.reports.figures.metric import metric_figure
from robustbench_elliptical.reports.figures.metric_change import metric_change_figure

__all__ = ["inside_figures"]


def inside_figures(
    block: ImageBlock, frames: Mapping[str, pd.DataFrame], name: str
) -> Iterator[Figure]:
    """Yield the figures about the inside of the models of a block.

    Parameters
    ----------
    block
        The models.
    frames
        Its frames of `inside_frames`.
    name
        What the names of the figures begin with.

    Raises
    ------
    UsageError
        If pictures can't be read.
    """
    yield from depth_figures(block, frames, joint_strongest(block), name)
    entries = block.entries[:MOST_MODELS]
    several = len(block.entries) > 1
    suffixes = [f"-{place}" if several else "" for place in range(1, len(entries) + 1)]
    galleries = gallery_figures(block, entries, [f"{name}-pictures{each}" for each in suffixes])
    for entry, gallery, suffix in zip(entries, galleries, suffixes, strict=True):
        changed = frames["metric-change"]
        found = (
            gallery,
            metric_figure(frames["metric"], entry.label, f"{name}-metric{suffix}"),
            metric_change_figure(block, entry, changed, f"{name}-metric-change{suffix}"),
        )
        yield from (figure for figure in found if figure is not None)

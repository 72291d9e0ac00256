"""What was measured, run by run, brought together: models on the same data, sample by sample."""

from robustbench_elliptical.reports.blocks.gathering import gather
from robustbench_elliptical.reports.blocks.images import ImageBlock, ImageEntry, ImageUnit
from robustbench_elliptical.reports.blocks.runs import Run, read_runs
from robustbench_elliptical.reports.blocks.text import TextBlock, TextEntry, TextUnit

__all__ = [
    "ImageBlock",
    "ImageEntry",
    "ImageUnit",
    "Run",
    "TextBlock",
    "TextEntry",
    "TextUnit",
    "gather",
    "read_runs",
]

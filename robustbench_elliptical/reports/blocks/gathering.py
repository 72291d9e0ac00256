"""Sort the models of several runs into blocks: those of one block saw the same data."""

from collections.abc import Sequence

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks.images import ImageBlock
from robustbench_elliptical.reports.blocks.joining_images import image_blocks
from robustbench_elliptical.reports.blocks.joining_text import text_blocks
from robustbench_elliptical.reports.blocks.runs import Run
from robustbench_elliptical.reports.blocks.text import TextBlock

__all__ = ["gather"]


def gather(runs: Sequence[Run]) -> list[ImageBlock | TextBlock]:
    """Read the rows of the runs and return their blocks, images first.

    Raises
    ------
    UsageError
        If rows are missing or broken, contradict their record, or one model was evaluated under
        the same attack on the same data in two runs.
    """
    blocks: list[ImageBlock | TextBlock] = [*image_blocks(runs), *text_blocks(runs)]
    if not blocks:
        raise UsageError("RUN must hold results of at least one model, got none; run `eval` again")
    return blocks

"""Figures for the column of a paper: colour-blind safe, readable in grey, drawn without a screen.

A figure is made from a block and its frames; pictures are read from the folder of the run.
"""

from robustbench_elliptical.reports.figures.images import image_figures
from robustbench_elliptical.reports.figures.inside import inside_figures
from robustbench_elliptical.reports.figures.rendering import Rendered, render_figure
from robustbench_elliptical.reports.figures.text import text_figures

__all__ = ["Rendered", "image_figures", "inside_figures", "render_figure", "text_figures"]

"""Figures for the column of a paper: colour-blind safe, readable in grey, drawn without a screen.

A figure is made from a block and its frames by one function; further kinds (a gallery, the
Elliptical metric by block) join as further functions that read an artefact beside the results.
"""

from robustbench_elliptical.reports.figures.images import image_figures
from robustbench_elliptical.reports.figures.rendering import Rendered, render_figure
from robustbench_elliptical.reports.figures.text import text_figures

__all__ = ["Rendered", "image_figures", "render_figure", "text_figures"]

"""Turn a drawing into files: the same bytes for the same numbers."""

import io
import re
from typing import NamedTuple

from matplotlib.figure import Figure as Drawing

from robustbench_elliptical.reports.contents.parts import Figure
from robustbench_elliptical.reports.figures.style import INK, style

__all__ = ["Rendered", "render_figure"]

_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg[^>]*?) (?:width|height)="[^"]*"')
_NAMESPACE = re.compile(r' xmlns(?::xlink)?="[^"]*"| version="1\.1"')
_ID = re.compile(r'(\bid="|href="#|url\(#)')


class Rendered(NamedTuple):
    """A figure in every format."""

    png: bytes
    svg: bytes
    pdf: bytes
    inline: str
    """The SVG element for a page: no name of it is used twice, its ink is the page's."""


def render_figure(figure: Figure) -> Rendered:
    """Render a figure."""
    with style():
        drawing = figure.draw()
        png = _saved(drawing, "png", {"Software": None})
        drawing.set_layout_engine("none")  # laid out by now; once is enough
        pdf = _saved(drawing, "pdf", {"CreationDate": None, "Producer": None, "Creator": None})
        svg = _saved(drawing, "svg", {"Date": None, "Creator": None})
        drawing.patch.set_alpha(0.0)
        for axes in drawing.axes:
            axes.patch.set_alpha(0.0)
        clear = _saved(drawing, "svg", {"Date": None, "Creator": None})
    return Rendered(png, svg, pdf, _inline(clear.decode("utf-8"), figure.name))


def _saved(drawing: Drawing, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    drawing.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _inline(svg: str, name: str) -> str:
    """Cut what only a file of its own needs; the names in it get that of the figure before them."""
    svg = _METADATA.sub("", _COMMENT.sub("", _PROLOGUE.sub("", svg)))
    head, rest = svg.split(">", 1)
    head = _SIZE.sub(r"\1", _SIZE.sub(r"\1", _NAMESPACE.sub("", head)))
    head += f' role="img" aria-labelledby="{name}-caption {name}-text" focusable="false"'
    rest = _ID.sub(rf"\g<1>{name}-", rest)
    return f"{head}>{rest}".replace(INK, "currentColor").replace("xlink:href", "href").strip()

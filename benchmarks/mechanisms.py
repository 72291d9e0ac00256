"""What every attention mechanism costs beside fused softmax attention.

    python -m benchmarks.mechanisms [--quick] [--markdown FILE]

One attention layer of DeiT-tiny's width (192, 3 heads, batch 2, random weights, projections
included) with each registered mechanism at its default settings, against the same layer with
softmax through PyTorch's fused kernel: forward, forward with backward (gradients of tokens and
weights), and the most memory that the latter holds. The last table gives the exponent p of
time ~ N^p between 1,024 and 4,096 tokens for mechanisms whose formula is linear in N.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.layers import Layer, build_layer
from benchmarks.memory import peak_bytes
from benchmarks.tables import conditions
from benchmarks.timing import Budget, compare, seconds
from robustbench_elliptical.models.attention import MECHANISMS

__all__ = ["LINEAR", "Place", "cost_table", "exponent", "main"]

LINEAR = ("softmax", "linformer", "performer", "lightning", "reformer", "nystromformer", "primal")
"""Linear in the number of tokens by their formula; softmax stands beside them."""
SLOW = 5.0
"""Seconds of a pass from which one pass must do."""


class Place(NamedTuple):
    """Where a layer is measured."""

    tokens: int
    causal: bool = False

    @property
    def title(self) -> str:
        """Return ``N = 256, causal``."""
        return f"N = {self.tokens}{', causal' if self.causal else ''}"


PLACES = (Place(50), Place(197), Place(1024), Place(256, causal=True), Place(1024, causal=True))


def cost_table(
    title: str,
    places: Sequence[Place],
    measure: Callable[[Layer, Layer], str],
    names: Sequence[str] = tuple(MECHANISMS),
) -> str:
    """Return a Markdown table of mechanisms by places.

    Parameters
    ----------
    title
        Heading.
    places
        Columns.
    measure
        Compares a layer with the softmax layer of the same place.
    names
        Rows.
    """
    rows = []
    for name in names:
        cells = [name]
        for place in places:
            layer = build_layer(name, place.tokens, causal=place.causal)
            softmax = build_layer("softmax", place.tokens, causal=place.causal)
            assert softmax is not None
            cells.append("no causal form" if layer is None else measure(layer, softmax))
        rows.append(cells)
        print(" | ".join(cells), flush=True)
    return _markdown(title, ["mechanism", *(place.title for place in places)], rows)


def exponent(name: str, short: int, long: int, budget: Budget) -> tuple[float, float, float]:
    """Return p of time ~ N^p for the forward between two numbers of tokens, with quartiles."""
    one, other = build_layer(name, long), build_layer(name, short)
    assert one is not None
    assert other is not None
    ratio = compare(one.forward, other.forward, budget)
    low, median, high = (math.log(each) / math.log(long / short) for each in ratio[:3])
    return low, median, high


def _forward(budget: Budget) -> Callable[[Layer, Layer], str]:
    return lambda layer, softmax: _ratio(layer.forward, softmax.forward, budget)


def _backward(budget: Budget) -> Callable[[Layer, Layer], str]:
    return lambda layer, softmax: _ratio(layer.forward_backward, softmax.forward_backward, budget)


def _memory(layer: Layer, softmax: Layer) -> str:
    ours, other = (peak_bytes(each.forward_backward) for each in (layer, softmax))
    return f"{ours / other:.2f} ({ours / 2**20:.1f} MiB)"


def _ratio(ours: Callable[[], object], other: Callable[[], object], budget: Budget) -> str:
    once = seconds(ours, 1)
    if once > SLOW:
        return f"{once / (seconds(other, 5) / 5):.0f} (one pass)"
    ratio = compare(ours, other, budget)
    digits = 2 if ratio.median < 20 else 0
    low, median, high = (f"{each:.{digits}f}" for each in ratio[:3])
    return f"{median} [{low}, {high}]"


def _markdown(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see that it runs.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the tables as Markdown.")
    ] = None,
) -> None:
    """Measure every attention mechanism against fused softmax attention."""
    places = (Place(17), Place(20, causal=True)) if quick else PLACES
    budget = Budget(0.1, least=2) if quick else Budget(1.0, least=5)
    sizes = (32, 64) if quick else (1024, 4096)
    parts = [
        cost_table("Forward, time over that of softmax [quartiles]", places, _forward(budget)),
        cost_table("Forward and backward, time over softmax", places, _backward(budget)),
        cost_table("Forward and backward, peak memory over softmax", places, _memory),
    ]
    slopes = [(name, exponent(name, *sizes, budget)) for name in LINEAR]
    rows = [[name, f"{p[1]:.2f} [{p[0]:.2f}, {p[2]:.2f}]"] for name, p in slopes]
    title = f"Exponent p of forward time ~ N^p, N = {sizes[0]} to {sizes[1]}"
    parts.append(_markdown(title, ["mechanism", "p"], rows))
    text = "\n\n".join([*parts, conditions()]) + "\n"
    print(text)
    if markdown is not None:
        markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command()(main)
    app(prog_name="python -m benchmarks.mechanisms")

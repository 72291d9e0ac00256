"""Numbers as a reader sees them; every format shows these texts."""

import math
import re
import unicodedata
from typing import Any

import pandas as pd

__all__ = [
    "count",
    "number",
    "p_text",
    "percent",
    "percent_range",
    "records",
    "signed",
    "slug",
    "span",
]

_FINE = 10_000
"""Samples from which a hundredth of a percent is shown."""


def percent(share: float, samples: int) -> str:
    """Return a share in percent: ``61.5``, ``61.52`` from 10 000 samples."""
    return f"{100 * share:.{_digits(samples)}f}"


def percent_range(low: float, high: float, samples: int) -> str:
    """Return ``[54.6, 68.0]``, in percent."""
    return f"[{percent(low, samples)}, {percent(high, samples)}]"


def signed(share: float, samples: int) -> str:
    """Return a difference of shares in points, with its sign: ``+12.5``."""
    text = percent(share, samples)
    return text if text.startswith("-") else f"+{text}"


def _digits(samples: int) -> int:
    return 2 if samples >= _FINE else 1


def number(value: float | None, digits: int = 2) -> str:
    """Return ``52.59``; a power of ten where it is large, ``failed`` where there is none."""
    if value is None or math.isnan(value):
        return "failed"
    if math.isinf(value) or abs(value) < 1e5:
        return f"{value:.{digits}f}"
    return f"{value:.2e}"


def span(low: float | None, high: float | None, digits: int = 2) -> str:
    """Return ``[48.10, 57.20]``, or ``no interval``."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "no interval"
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(value: float) -> str:
    """Return passes per sample: ``21``, ``20.4``, ``1301``."""
    return f"{value:.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"


def p_text(value: float) -> str:
    """Return ``0.031``, or ``< 0.001``."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def slug(text: str) -> str:
    """Return a name for files and anchors: lower-case ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "x"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame."""
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]

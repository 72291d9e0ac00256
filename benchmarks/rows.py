"""What a benchmark returns: rows of the table, or why it was left out."""

from dataclasses import dataclass

from benchmarks.timing import Budget, Ratio

__all__ = ["FULL", "QUICK", "Row", "Size", "Skipped"]


@dataclass(frozen=True)
class Size:
    """How much a benchmark measures."""

    images: int
    """Images of one attack against its floor."""
    peer_images: int
    """Images of one attack against another library's."""
    steps: int
    samples: int
    """Pairs of probes of SPSA."""
    budget: Budget


FULL = Size(images=8, peer_images=64, steps=20, samples=32, budget=Budget(seconds=10))
QUICK = Size(images=2, peer_images=8, steps=2, samples=2, budget=Budget(seconds=0.3, least=3))


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    benchmark: str
    measured: str
    against: str
    """The floor or the peer."""
    ratio: Ratio
    target: float | None
    """What the median may be at most; None where the row only informs."""
    count: int
    unit: str = "images"
    """What was counted."""

    @property
    def verdict(self) -> str:
        """Whether the target is met, by the median."""
        if self.target is None:
            return "-"
        return "met" if self.ratio.median <= self.target else "missed"

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, one entry a column."""
        ratio = self.ratio
        return (
            self.benchmark,
            self.measured,
            self.against,
            f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
            "-" if self.target is None else f"<= {self.target:.2f}",
            self.verdict,
            f"{self.count} {self.unit}, {ratio.repetitions} turns",
        )


class Skipped(Exception):  # noqa: N818 - nothing went wrong
    """Why a benchmark can't run here, as a sentence."""

"""How often the gate is wrong, and how often it sees what it should, by simulation.

    python -m benchmarks.gate_power [RUNS]

draws paired outcomes (RUNS a row, 1000 by default; keyed seeds) and decides as `check` does, with
Holm's correction over the checks. The columns:

- false alarms: some check says regressed although every drop is exactly the allowed one;
- false passes: some check says pass in the same situation;
- caught: a check whose drop is twice the allowed one is regressed;
- passed: a check that loses as often as it gains is pass or improved.

The number of samples is the one that the tool recommends for the discordance, or a small one. The
last rows are for perplexities: documents whose losses differ by a skewed noise.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from robustbench_elliptical.gate.decisions import Counts, Evidence, decide, ratio_evidence
from robustbench_elliptical.gate.exact import exceeds
from robustbench_elliptical.gate.power import documents_needed, samples_needed
from robustbench_elliptical.gate.ratio import LEAST_DOCUMENTS

__all__ = ["Row", "accuracy_row", "perplexity_row", "table"]

ALPHA, POWER = 0.05, 0.8

_exceeds = cache(exceeds)


class Row(NamedTuple):
    """Shares of simulated gates."""

    what: str
    checks: int
    samples: int
    false_alarms: float
    false_passes: float
    caught: float
    passed: float


def accuracy_row(
    max_drop: float, discordant: float, checks: int, runs: int, samples: int | None = None
) -> Row:
    """Simulate gates of several independent checks of accuracy.

    Parameters
    ----------
    max_drop
        Allowed drop.
    discordant
        Share of discordant samples; where the drop needs more, that many.
    checks
        How many.
    runs
        Gates to simulate.
    samples
        Of each check; none: the recommended number, from a pilot of 1000 samples.
    """
    if samples is None:
        half = round(500 * discordant)
        level = ALPHA / checks
        samples = samples_needed(half, half, 1000, max_drop, level=level, power=POWER)
        assert samples is not None
    size = samples
    generator = np.random.default_rng([checks, size, round(1e4 * max_drop)])

    def gate(drop: float) -> list[str]:
        share = max(discordant, drop)
        shares = [(share + drop) / 2, (share - drop) / 2, 1 - share]
        drawn = generator.multinomial(size, shares, size=checks).tolist()
        evidence = [_evidence(lost, gained, size, max_drop) for lost, gained, _ in drawn]
        return [each.verdict for each in decide(evidence, ALPHA, POWER)]

    what = f"accuracy, {100 * max_drop:g} pp, {100 * discordant:g} % discordant"
    return _row(what, checks, size, gate, (max_drop, 2 * max_drop, 0.0), runs)


def _evidence(lost: int, gained: int, samples: int, max_drop: float) -> Evidence:
    return Evidence(
        _exceeds(lost, gained, samples, max_drop),
        _exceeds(gained, lost, samples, -max_drop),
        _exceeds(gained, lost, samples, 0.0),
        max_drop,
        Counts(lost, gained, samples),
    )


def perplexity_row(
    max_increase: float, noise: float, runs: int, documents: int | None = None
) -> Row:
    """Simulate gates of one check of perplexity.

    Parameters
    ----------
    max_increase
        Allowed increase.
    noise
        Standard deviation of a document's difference a target; exponential, so skewed.
    runs
        Gates to simulate.
    documents
        How many; none: the recommended number.
    """
    limit = float(np.log1p(max_increase))
    if documents is None:
        documents = documents_needed(
            (noise, 2.0), 0.0, limit, 1, LEAST_DOCUMENTS, level=ALPHA, power=POWER
        )
        assert documents is not None
    size = documents
    generator = np.random.default_rng([size, round(1e4 * noise)])

    def gate(log_ratio: float) -> list[str]:
        targets = generator.integers(150, 250, size).astype(np.float64)
        old = 3 * targets + generator.normal(0, 10, size)
        new = old + targets * (log_ratio + noise * (generator.exponential(1, size) - 1))
        seed = int(generator.integers(2**31))
        evidence = ratio_evidence(old, new, targets, max_increase, seed)
        return [each.verdict for each in decide([evidence], ALPHA, POWER)]

    what = f"perplexity, {100 * max_increase:g} %, noise {noise:g}"
    return _row(what, 1, size, gate, (limit, 2 * limit, 0.0), runs)


def _row(
    what: str,
    checks: int,
    samples: int,
    gate: Callable[[float], list[str]],
    losses: tuple[float, float, float],
    runs: int,
) -> Row:
    boundary, planted, none = ([gate(loss) for _ in range(runs)] for loss in losses)
    return Row(
        what,
        checks,
        samples,
        float(np.mean(["regressed" in each for each in boundary])),
        float(np.mean([bool({"pass", "improved"} & set(each)) for each in boundary])),
        float(np.mean([each[0] == "regressed" for each in planted])),
        float(np.mean([each[0] in ("pass", "improved") for each in none])),
    )


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| what | checks | n | false alarms | false passes | caught | passed |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        shares = " | ".join(f"{100 * share:.1f} %" for share in row[3:])
        lines.append(f"| {row.what} | {row.checks} | {row.samples} | {shares} |")
    return "\n".join(lines)


def main(runs: int) -> None:
    """Print the table."""
    rows = [
        accuracy_row(0.01, 0.05, 1, runs, samples=50),
        accuracy_row(0.01, 0.05, 1, runs, samples=200),
        accuracy_row(0.01, 0.002, 1, runs),
        accuracy_row(0.01, 0.02, 1, runs),
        accuracy_row(0.01, 0.05, 1, runs),
        accuracy_row(0.02, 0.1, 1, runs),
        accuracy_row(0.01, 0.02, 5, runs),
        accuracy_row(0.02, 0.05, 8, runs),
        *(perplexity_row(0.02, 0.05, runs, documents=count) for count in (16, 30)),
        perplexity_row(0.02, 0.05, runs),
        perplexity_row(0.02, 0.1, runs),
    ]
    print(table(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)

"""The versioned result of an evaluation: schema, statistics, files. Knows nothing about models."""

from robustbench_elliptical.results.schema import (
    SAMPLE_COLUMNS,
    AttackRecord,
    DataRecord,
    Finding,
    ModelRecord,
    Outcome,
    Results,
    RunRecord,
    Summary,
)
from robustbench_elliptical.results.statistics import Interval, wilson_interval
from robustbench_elliptical.results.storage import check_writable, read_results, write_results

__all__ = [
    "SAMPLE_COLUMNS",
    "AttackRecord",
    "DataRecord",
    "Finding",
    "Interval",
    "ModelRecord",
    "Outcome",
    "Results",
    "RunRecord",
    "Summary",
    "check_writable",
    "read_results",
    "wilson_interval",
    "write_results",
]

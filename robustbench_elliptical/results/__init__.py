"""The versioned result of an evaluation: schema, statistics, files. Knows nothing about models."""

from robustbench_elliptical.results.image_classification import (
    SAMPLE_COLUMNS,
    AccuracySummary,
    AttackRecord,
    DataRecord,
    ImageClassificationResults,
    Outcome,
)
from robustbench_elliptical.results.internals import (
    Estimate,
    InternalsRecord,
    MetricRecord,
    PictureRecord,
)
from robustbench_elliptical.results.language_modelling import (
    DOCUMENT_COLUMNS,
    LanguageModellingResults,
    PerplexityComparison,
    PerplexityProtocol,
    PerplexitySummary,
    TextAttackRecord,
    TextRecord,
)
from robustbench_elliptical.results.paired import (
    Difference,
    McNemar,
    holm,
    mcnemar,
    paired_difference,
)
from robustbench_elliptical.results.records import Finding, Knowledge, ModelRecord, RunRecord
from robustbench_elliptical.results.schema import SCHEMA_VERSION, Results, TaskResults
from robustbench_elliptical.results.statistics import Interval, wilson_interval
from robustbench_elliptical.results.storage import (
    Evaluation,
    check_writable,
    read_record,
    read_results,
    write_results,
)

__all__ = [
    "DOCUMENT_COLUMNS",
    "SAMPLE_COLUMNS",
    "SCHEMA_VERSION",
    "AccuracySummary",
    "AttackRecord",
    "DataRecord",
    "Difference",
    "Estimate",
    "Evaluation",
    "Finding",
    "ImageClassificationResults",
    "InternalsRecord",
    "Interval",
    "Knowledge",
    "LanguageModellingResults",
    "McNemar",
    "MetricRecord",
    "ModelRecord",
    "Outcome",
    "PerplexityComparison",
    "PerplexityProtocol",
    "PerplexitySummary",
    "PictureRecord",
    "Results",
    "RunRecord",
    "TaskResults",
    "TextAttackRecord",
    "TextRecord",
    "check_writable",
    "holm",
    "mcnemar",
    "paired_difference",
    "read_record",
    "read_results",
    "wilson_interval",
    "write_results",
]

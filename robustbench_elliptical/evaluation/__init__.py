"""Evaluate models under attack: engine, verification, findings, provenance."""

from robustbench_elliptical.evaluation.run import evaluate
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.evaluation.suites import Suite, load_suite

__all__ = ["EvaluationSettings", "Suite", "evaluate", "load_suite"]

"""Evaluate models under attack: engine, verification, findings, provenance."""

from robustbench_elliptical.evaluation.run import Evaluation, evaluate
from robustbench_elliptical.evaluation.settings import EvaluationSettings
from robustbench_elliptical.evaluation.suites import Suite, load_suite

__all__ = ["Evaluation", "EvaluationSettings", "Suite", "evaluate", "load_suite"]

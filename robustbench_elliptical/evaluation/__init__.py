"""Evaluate models under attack: engine, verification, findings, provenance."""

from robustbench_elliptical.evaluation.run import Evaluation, evaluate
from robustbench_elliptical.evaluation.settings import EvaluationSettings

__all__ = ["Evaluation", "EvaluationSettings", "evaluate"]

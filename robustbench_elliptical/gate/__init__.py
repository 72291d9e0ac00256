"""Decide whether a checkpoint got less robust than a frozen baseline."""

from robustbench_elliptical.gate.baseline import Baseline, freeze
from robustbench_elliptical.gate.judging import judge
from robustbench_elliptical.gate.reference import check_rules, reference_model
from robustbench_elliptical.gate.report import EXIT_CODES, CheckRecord, GateReport
from robustbench_elliptical.gate.rules import AttackRules, Rules, read_rules
from robustbench_elliptical.gate.storage import read_baseline, write_baseline

__all__ = [
    "EXIT_CODES",
    "AttackRules",
    "Baseline",
    "CheckRecord",
    "GateReport",
    "Rules",
    "check_rules",
    "freeze",
    "judge",
    "read_baseline",
    "read_rules",
    "reference_model",
    "write_baseline",
]

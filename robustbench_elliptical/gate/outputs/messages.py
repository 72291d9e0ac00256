"""What stops the pipeline and what is only worth knowing: the same for every format."""

from typing import Literal, NamedTuple

from robustbench_elliptical.core.specs import format_epsilon
from robustbench_elliptical.gate.report import CheckRecord, GateReport
from robustbench_elliptical.results import Finding

__all__ = ["Message", "amount", "change", "finding_text", "messages"]


class Message(NamedTuple):
    """One thing to say."""

    level: Literal["error", "warning", "notice"]
    """error: makes the exit code other than 0; warning: would under stricter rules."""
    kind: str
    """A verdict, `finding`, `incomplete` or `notice`."""
    title: str
    """What it is about; from outside."""
    text: str
    """The sentence; from outside in part."""


def messages(report: GateReport) -> list[Message]:
    """Return everything but the checks that passed, what stops the pipeline first."""
    found = []
    for check in report.checks:
        if check.verdict in ("regressed", "inconclusive"):
            level: Literal["error", "warning"] = "warning"
            if check.verdict in report.rules.fail_on:
                level = "error"
            text = f"{_numbers(check)}. {check.reason}"
            found.append(Message(level, check.verdict, check.title, text))
    for finding in report.findings:
        serious = finding.severity != "notice"
        stops = serious and "findings" in report.rules.fail_on
        level = "error" if stops else "warning"
        text = finding_text(finding)
        found.append(Message(level if serious else "notice", "finding", finding.id, text))
    first = report.outcome == "incomplete"
    for index, notice in enumerate(report.notices):
        if first and not index:
            found.append(Message("error", "incomplete", report.model, notice))
        else:
            found.append(Message("notice", "notice", report.model, notice))
    return sorted(found, key=lambda each: ("error", "warning", "notice").index(each.level))


def finding_text(finding: Finding) -> str:
    """Return a red flag as sentences."""
    place = [finding.attack or ""]
    place += [format_epsilon(finding.epsilon)] if finding.epsilon else []
    place += [f"{100 * finding.rate:g} %"] if finding.rate else []
    subject = " ".join(part for part in place if part)
    return f"{subject + ': ' if subject else ''}{finding.evidence} {finding.remedy}"


def amount(check: CheckRecord, value: float) -> str:
    """Return an accuracy or a perplexity as people write it."""
    return f"{100 * value:.1f} %" if check.measure == "accuracy" else f"{value:.3f}"


def change(check: CheckRecord) -> str:
    """Return the signed change: of an accuracy in points, of a perplexity in percent."""
    if check.measure == "accuracy":
        return f"{0.0 - 100 * check.change:+.1f} pp"
    return f"{100 * (check.change - 1):+.2f} %"


def _numbers(check: CheckRecord) -> str:
    before, after = amount(check, check.baseline), amount(check, check.checked)
    return f"{check.measure.capitalize()} {before} to {after} ({change(check)})"

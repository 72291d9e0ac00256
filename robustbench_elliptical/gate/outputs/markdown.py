"""Markdown, for the comment on a merge request and for the step summary of GitHub Actions."""

from robustbench_elliptical.gate.outputs.escaping import code
from robustbench_elliptical.gate.outputs.messages import amount, change, messages
from robustbench_elliptical.gate.report import CheckRecord, GateReport

__all__ = ["render_markdown_comment"]

_HEADINGS = {
    "pass": "passes",
    "regressed": "got less robust",
    "findings": "has findings",
    "inconclusive": "inconclusive",
    "incomplete": "evaluation incomplete",
}


def render_markdown_comment(report: GateReport) -> str:
    """Return the report as Markdown."""
    lines = [
        f"### Robustness gate: {_HEADINGS[report.outcome]}",
        "",
        f"{code(report.model)} against {code(report.baseline_model)}"
        f"{', same weights' if report.same_weights else ''}; family-wise alpha "
        f"{report.rules.alpha:g}.",
        "",
    ]
    if report.checks:
        lines += [
            "| check | n | baseline | now | change | allowed | verdict |",
            "|---|---:|---:|---:|---:|---:|---|",
            *(_row(check) for check in report.checks),
            "",
        ]
    lines += [f"- {each.level}: {code(f'{each.title}: {each.text}')}" for each in messages(report)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(check: CheckRecord) -> str:
    allowed = (
        f"-{100 * check.allowed:g} pp"
        if check.measure == "accuracy"
        else f"+{100 * (check.allowed - 1):g} %"
    )
    cells = (
        code(check.title).replace("|", "\\|"),
        str(check.samples),
        amount(check, check.baseline),
        amount(check, check.checked),
        change(check),
        allowed,
        f"**{check.verdict}**" if check.verdict == "regressed" else check.verdict,
    )
    return f"| {' | '.join(cells)} |"

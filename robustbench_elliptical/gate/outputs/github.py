"""GitHub Actions: annotations as workflow commands."""

from robustbench_elliptical.gate.outputs.escaping import (
    one_line,
    workflow_data,
    workflow_property,
)
from robustbench_elliptical.gate.outputs.messages import messages
from robustbench_elliptical.gate.report import GateReport

__all__ = ["annotations"]


def annotations(report: GateReport) -> list[str]:
    """Return one workflow command a message, each a line."""
    return [
        f"::{each.level} title={workflow_property(one_line(f'{each.kind}: {each.title}'))}::"
        f"{workflow_data(one_line(each.text))}"
        for each in messages(report)
    ]

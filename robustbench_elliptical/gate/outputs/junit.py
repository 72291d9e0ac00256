"""JUnit XML, one test case a check: what GitLab, Jenkins and GitHub actions show."""

from xml.etree import ElementTree as ET

from robustbench_elliptical.gate.outputs.escaping import xml_text
from robustbench_elliptical.gate.outputs.messages import Message, messages
from robustbench_elliptical.gate.report import GateReport

__all__ = ["render_junit"]


def render_junit(report: GateReport) -> bytes:
    """Return the report as JUnit XML in UTF-8.

    A case fails exactly if it makes the exit code other than 0: regressed and inconclusive checks
    and findings that the rules fail on. An incomplete evaluation is an error, an inconclusive check
    that the rules let through is skipped.
    """
    said = messages(report)
    by_title = {each.title: each for each in said if each.kind in ("regressed", "inconclusive")}
    suite = ET.Element("testsuite")
    for check in report.checks:
        _case(suite, report, check.title, by_title.get(check.title))
    for each in said:
        if each.kind == "incomplete" or (each.kind == "finding" and each.level == "error"):
            _case(suite, report, f"{each.kind} {each.title}", each)
    texts = [f"{each.level}: {each.title}: {each.text}" for each in said]
    if texts:
        ET.SubElement(suite, "system-out").text = xml_text("\n".join(texts))
    counts = {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(len(suite.findall("testcase/failure"))),
        "errors": str(len(suite.findall("testcase/error"))),
    }
    name = xml_text(f"elliptical-robust check {report.model}")
    suite.attrib |= {"name": name, **counts}
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    root = ET.Element("testsuites", {"name": "elliptical-robust", **counts})
    root.append(suite)
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _case(suite: ET.Element, report: GateReport, title: str, message: Message | None) -> None:
    case = ET.SubElement(
        suite, "testcase", {"name": xml_text(title), "classname": xml_text(report.model)}
    )
    if message is None:
        return
    text = xml_text(message.text)
    if message.kind == "incomplete":
        ET.SubElement(case, "error", {"message": text, "type": message.kind})
    elif message.level == "error":
        ET.SubElement(case, "failure", {"message": text, "type": message.kind})
    elif message.kind == "inconclusive":
        ET.SubElement(case, "skipped", {"message": text})

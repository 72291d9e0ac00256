"""The gate: a baseline, the evaluation of a checkpoint and rules make a report."""

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.gate.baseline import Baseline, frozen_documents, frozen_samples
from robustbench_elliptical.gate.checks import Check, image_checks, language_checks
from robustbench_elliptical.gate.decisions import decide
from robustbench_elliptical.gate.differences import find_differences, find_notices
from robustbench_elliptical.gate.outputs.escaping import one_line
from robustbench_elliptical.gate.reference import other_parts
from robustbench_elliptical.gate.report import EXIT_CODES, CheckRecord, GateReport, Outcome
from robustbench_elliptical.gate.rules import Rules
from robustbench_elliptical.gate.wording import check_record
from robustbench_elliptical.results import (
    Evaluation,
    Finding,
    ImageClassificationResults,
    ModelRecord,
    TaskResults,
)

__all__ = ["judge"]


def judge(
    baseline: Baseline, evaluation: Evaluation, reference: ModelRecord, rules: Rules
) -> GateReport:
    """Decide whether a checkpoint may pass.

    Parameters
    ----------
    baseline
        The frozen run.
    evaluation
        Of the checkpoint, with the settings of the baseline; its first model is judged.
    reference
        The model of the baseline that it is held against.
    rules
        What it may lose.

    Raises
    ------
    UsageError
        If the evaluation differs from that of the baseline, with the list of differences.
    """
    part = evaluation.results.tasks[0]
    model = part.models[0]
    notices = find_notices(baseline.results, evaluation.results)
    missing = _missing(evaluation, model.name)
    checks: list[CheckRecord] = []
    if missing:
        notices.insert(0, missing)
    else:
        pairs = _checks(baseline, evaluation, (reference.name, model.name), part, rules)
        others = other_parts(reference, model)
        equal = all(each.equal for each in pairs)
        if others and "weights" not in others:
            notices.append(f"The weights are the same, but not the {' and the '.join(others)}.")
        elif not others and not equal:
            notices.append("The weights are the same, but some outcomes are not.")
        decisions = decide([each.evidence for each in pairs], rules.alpha, rules.power)
        checks = [
            check_record(pair, decision, same=equal and not others)
            for pair, decision in zip(pairs, decisions, strict=True)
        ]
    findings = [each for each in part.findings if each.model == model.name]
    outcome = "incomplete" if missing else _outcome(checks, findings, rules)
    return GateReport(
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        task=part.task,
        model=model.name,
        weights_sha256=model.weights_sha256,
        baseline_model=reference.name,
        baseline_weights_sha256=reference.weights_sha256,
        same_weights=model.weights_sha256 == reference.weights_sha256,
        rules=rules,
        checks=checks,
        findings=findings,
        notices=notices,
    )


def _missing(evaluation: Evaluation, model: str) -> str | None:
    """Return why no decision can be made, if so."""
    if not evaluation.results.complete:
        return "The evaluation was interrupted: nothing is decided."
    rows = evaluation.samples if len(evaluation.samples) else evaluation.documents
    own = rows[rows["model"] == model]
    failed = int((own["outcome"] == "failed").sum())
    if failed:
        return f"{failed} of {len(own)} outcomes failed (no finite answer): nothing is decided."
    return None


def _checks(
    baseline: Baseline,
    evaluation: Evaluation,
    names: tuple[str, str],
    part: TaskResults,
    rules: Rules,
) -> list[Check]:
    """Return the checks of two models, named in the baseline and in the evaluation."""
    before, after = baseline.results, evaluation.results
    if isinstance(part, ImageClassificationResults):
        samples = next(each for each in baseline.samples if each.model == names[0])
        outcomes = frozen_samples(evaluation.samples, names[1])
        _refuse(find_differences((before, samples), (after, outcomes), part.task))
        return image_checks(samples, outcomes, part, rules)
    documents = next(each for each in baseline.documents if each.model == names[0])
    losses = frozen_documents(evaluation.documents, names[1])
    _refuse(find_differences((before, documents), (after, losses), part.task))
    return language_checks(documents, losses, part, rules, after.run.seed)


def _refuse(differences: list[str]) -> None:
    if differences:
        listed = "; ".join(one_line(each) for each in differences)
        raise UsageError(
            f"the evaluation must be that of the baseline, and differs in: {listed}; restore what "
            "changed or freeze a new baseline"
        )


def _outcome(checks: list[CheckRecord], findings: list[Finding], rules: Rules) -> Outcome:
    verdicts = {each.verdict for each in checks}
    if "regressed" in verdicts and "regressed" in rules.fail_on:
        return "regressed"
    serious = any(each.severity in ("error", "warning") for each in findings)
    if serious and "findings" in rules.fail_on:
        return "findings"
    if "inconclusive" in verdicts and "inconclusive" in rules.fail_on:
        return "inconclusive"
    return "pass"

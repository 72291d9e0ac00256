"""Write a report as a folder: whole or not at all."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.reports.blocks import gather, read_runs
from robustbench_elliptical.reports.contents import Report, build_report
from robustbench_elliptical.reports.figures import Rendered, render_figure
from robustbench_elliptical.reports.formats.data import render_csv, render_json
from robustbench_elliptical.reports.formats.html import render_html
from robustbench_elliptical.reports.formats.latex import render_latex, render_latex_table
from robustbench_elliptical.reports.formats.markdown import render_report_markdown
from robustbench_elliptical.results import check_writable

__all__ = ["write_report"]


def write_report(runs: Sequence[Path], folder: Path, *, against: str | None = None) -> list[Path]:
    """Report on result folders in a new folder.

    It gets `report.html`, `report.md`, `report.tex`, `report.json`, `tables/` (CSV in full
    precision, LaTeX to paste) and `figures/` (PNG, SVG, PDF). Models on the same data are compared
    sample by sample, whichever run they are from; models on other data stand in a section of their
    own. The same results give the same bytes.

    Parameters
    ----------
    runs
        Result folders that `eval` wrote.
    folder
        Must not exist. It is written beside itself first and renamed into place.
    against
        The model that all others are compared with, as its tables call it; none: every two.

    Returns
    -------
    list of Path
        The files, relative to the folder.

    Raises
    ------
    UsageError
        If a run can't be read, two runs can't be told apart, no run has the model `against`, or
        the folder can't be written;
        nothing is left behind.
    """
    check_writable(folder)
    read = read_runs(runs)
    report = build_report(read, gather(read), against)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        _write(report, partial)
        partial.chmod(0o755)
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise _unwritable(folder, error) from None
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write the report to {folder}: {error.strerror or error}; free some space or "
        "choose another --output"
    )


def _write(report: Report, folder: Path) -> None:
    (folder / "tables").mkdir()
    (folder / "figures").mkdir()
    figures = _write_figures(report, folder / "figures")
    for section in report.sections:
        for name, frame in section.frames.items():
            _put(folder / "tables" / f"{section.name}-{name}.csv", render_csv(frame))
        for table in section.tables:
            text = render_latex_table(section, table)
            _put(folder / "tables" / f"{table.name}.tex", text)
    _put(folder / "report.html", render_html(report, figures))
    _put(folder / "report.md", render_report_markdown(report))
    _put(folder / "report.tex", render_latex(report))
    _put(folder / "report.json", render_json(report))


def _write_figures(report: Report, folder: Path) -> dict[str, Rendered]:
    figures: dict[str, Rendered] = {}
    for section in report.sections:
        for figure in section.figures:
            rendered = render_figure(figure)
            for kind in ("png", "svg", "pdf"):
                (folder / f"{figure.name}.{kind}").write_bytes(getattr(rendered, kind))
            figures[figure.name] = rendered
    return figures


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")

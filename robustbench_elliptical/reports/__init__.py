"""Tables from results. Reads results only: no model and no attack is imported here."""

from robustbench_elliptical.reports.markdown import render_markdown
from robustbench_elliptical.reports.tables import accuracy_table, attack_title, percent

__all__ = ["accuracy_table", "attack_title", "percent", "render_markdown"]

"""Find the data folders that ship with the package: cards, checkpoints, recipes, templates."""

from importlib.resources import files
from pathlib import Path

__all__ = ["shipped"]


def shipped(folder: str) -> Path:
    """Return where a shipped folder lies, such as ``models/cards``.

    A wheel holds it under ``robustbench_elliptical/shipped``; a checkout (editable install) holds
    it at its root.

    Raises
    ------
    FileNotFoundError
        If neither place has the folder: the installation is broken.
    """
    package = Path(str(files("robustbench_elliptical")))
    for candidate in (package / "shipped" / folder, package.parent / folder):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the shipped folder {folder!r} is missing from {package}; reinstall")

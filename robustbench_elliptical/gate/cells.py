"""What is checked: the cells of an evaluation, and how people read them."""

from typing import Literal, NamedTuple

from robustbench_elliptical.core.specs import format_epsilon

__all__ = ["CLEAN", "WORST_CASE", "Cell", "TaskName"]

TaskName = Literal["image-classification", "language-modelling"]

CLEAN = "clean"
WORST_CASE = "worst-case"


class Cell(NamedTuple):
    """One attack at one epsilon or rate."""

    task: TaskName
    attack: str
    """Its label; `clean`, or `worst-case` for the attacks of one norm together."""
    norm: str | None
    """Norm of a worst case, none elsewhere: a label implies it."""
    size: float
    """Epsilon or rate."""

    @property
    def title(self) -> str:
        """The cell as people write it, on one line but otherwise not escaped."""
        words = [self.attack] + ([self.norm] if self.norm else [])
        if self.task == "language-modelling":
            words = ["text", *words]
            words += [f"{100 * self.size:g} %"] if self.size else []
        else:
            words += [format_epsilon(self.size)] if self.size else []
        return " ".join(words)

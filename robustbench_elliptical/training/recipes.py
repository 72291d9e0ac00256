"""Find a recipe by name, whatever it trains."""

from robustbench_elliptical.core.settings import validated
from robustbench_elliptical.training.language.bigram import BigramRecipe
from robustbench_elliptical.training.language.recipe import LanguageRecipe
from robustbench_elliptical.training.recipe import Recipe, read_recipe

__all__ = ["AnyRecipe", "find_recipe"]

AnyRecipe = Recipe | LanguageRecipe | BigramRecipe


def find_recipe(name: str) -> AnyRecipe:
    """Load a shipped recipe by name, or one from a path ending in ``.toml``.

    Raises
    ------
    UsageError
        If it is unknown, unreadable or not valid.
    """
    values, subject = read_recipe(name)
    architecture = values.get("architecture")
    family = architecture.get("family") if isinstance(architecture, dict) else None
    if family == "decoder":
        return validated(LanguageRecipe, values, subject)
    if family == "bigram":
        return validated(BigramRecipe, values, subject)
    return validated(Recipe, values, subject)

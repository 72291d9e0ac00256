"""Train the small language models that ship with the package: seeded, resumable at any step."""

from robustbench_elliptical.training.language.recipe import LanguageRecipe, load_language_recipe
from robustbench_elliptical.training.language.trainer import LanguageTrainingJob, train_language

__all__ = ["LanguageRecipe", "LanguageTrainingJob", "load_language_recipe", "train_language"]

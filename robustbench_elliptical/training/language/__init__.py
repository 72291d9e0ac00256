"""Train the small language models that ship with the package: seeded, resumable at any step."""

from robustbench_elliptical.training.language.bigram import BigramRecipe, count_bigrams
from robustbench_elliptical.training.language.publish import (
    PublishedLanguageModel,
    measure_published,
    publish_language,
)
from robustbench_elliptical.training.language.recipe import LanguageRecipe, load_language_recipe
from robustbench_elliptical.training.language.trainer import LanguageTrainingJob, train_language

__all__ = [
    "BigramRecipe",
    "LanguageRecipe",
    "LanguageTrainingJob",
    "PublishedLanguageModel",
    "count_bigrams",
    "load_language_recipe",
    "measure_published",
    "publish_language",
    "train_language",
]

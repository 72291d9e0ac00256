"""Train the small models that ship with the package: seeded, resumable, one recipe for all."""

from robustbench_elliptical.training.publish import Published, publish
from robustbench_elliptical.training.recipe import Recipe, load_recipe
from robustbench_elliptical.training.trainer import TrainingJob, train

__all__ = ["Published", "Recipe", "TrainingJob", "load_recipe", "publish", "train"]

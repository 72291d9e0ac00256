"""Count pairs of words and publish the counts: the sanity floor of every table of perplexities."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from robustbench_elliptical.data.text import TextCorpus
from robustbench_elliptical.models.cards import LanguageCard, Training
from robustbench_elliptical.models.language import BigramArchitecture, BigramModel
from robustbench_elliptical.training.language.publish import (
    PublishedLanguageModel,
    measure_published,
    publish_card,
)

__all__ = ["BigramRecipe", "count_bigrams"]


class _Bigram(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    family: Literal["bigram"]
    """Which kind of model."""


class BigramRecipe(BaseModel):
    """How to count: nothing to choose."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """The model is called NAME-DATA."""
    version: int = Field(ge=1)
    """Raised when a change makes new numbers incomparable with old ones."""
    architecture: _Bigram
    """The model."""


def count_bigrams(
    recipe: BigramRecipe, corpus: TextCorpus, output: Path, command: str
) -> PublishedLanguageModel:
    """Count the training part of a corpus, measure and publish.

    Parameters
    ----------
    recipe
        Names the model.
    corpus
        The text; its training part decides the vocabulary.
    output
        Folder for checkpoint, vocabulary and card.
    command
        The command line that counts again, for the card.

    Raises
    ------
    UsageError
        If the corpus has no training part, or the folder another vocabulary of that name.
    """
    vocabulary = corpus.vocabulary()
    model = BigramModel.count(corpus.split("train").tokens(vocabulary), len(vocabulary))
    data = corpus.name.partition(":")[0]
    card = LanguageCard(
        name=f"{recipe.name}-{data}",
        family=f"{recipe.name}-{data}",
        licence="Apache-2.0",
        source="counted by this project",
        architecture=BigramArchitecture(vocab_size=len(vocabulary), pairs=len(model.counts)),
        training=Training(command=command, recipe=recipe.name, recipe_version=recipe.version),
    )
    published = publish_card(card, model.state_dict(), vocabulary, data, output)
    return measure_published(published, corpus)

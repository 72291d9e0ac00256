"""Model cards: what a checkpoint cannot say about itself, as one TOML file a user can write.

A checkpoint holds tensors. Which attention mechanism they were trained with, how an input is
prepared and what accuracy or perplexity to expect is written on the card. Each task has a card of
its own kind; `Card` is any of them, told apart by `task`.
"""

from robustbench_elliptical.models.cards.attention import resolved_attention
from robustbench_elliptical.models.cards.base import CheckpointFile, Training, VocabularyFile
from robustbench_elliptical.models.cards.files import (
    Card,
    Task,
    card_to_toml,
    checkpoint_path,
    list_models,
    load_card,
    shipped_cards,
    vocabulary_path,
)
from robustbench_elliptical.models.cards.image import ImageCard, InputNormalisation, Measurement
from robustbench_elliptical.models.cards.language import LanguageCard, PerplexityMeasurement

__all__ = [
    "Card",
    "CheckpointFile",
    "ImageCard",
    "InputNormalisation",
    "LanguageCard",
    "Measurement",
    "PerplexityMeasurement",
    "Task",
    "Training",
    "VocabularyFile",
    "card_to_toml",
    "checkpoint_path",
    "list_models",
    "load_card",
    "resolved_attention",
    "shipped_cards",
    "vocabulary_path",
]

"""Models: attention mechanisms, backbones, checkpoints, cards, and the loader that joins them.

Knows nothing about attacks or data sets. To load one::

    from robustbench_elliptical.models import load_model

    model = load_model("deit-tiny-elliptical", checkpoint="weights.pth")
"""

from robustbench_elliptical.models.architecture import (
    AttentionChoice,
    DistilledArchitecture,
    FanArchitecture,
    ImageArchitecture,
    RvtArchitecture,
    VisionTransformerArchitecture,
    build_network,
)
from robustbench_elliptical.models.cards import (
    Card,
    CheckpointFile,
    ImageCard,
    InputNormalisation,
    LanguageCard,
    Measurement,
    PerplexityMeasurement,
    Task,
    Training,
    VocabularyFile,
    card_to_toml,
    list_models,
    load_card,
    shipped_cards,
)
from robustbench_elliptical.models.checkpoints import read_checkpoint
from robustbench_elliptical.models.choices import ModelChoice, parse_model
from robustbench_elliptical.models.description import LanguageDescription, ModelDescription
from robustbench_elliptical.models.encoding import EncodedDocument, WordEncoder
from robustbench_elliptical.models.hashing import file_sha256, state_sha256
from robustbench_elliptical.models.image_classifier import ImageClassifier
from robustbench_elliptical.models.loading import load_model
from robustbench_elliptical.models.text_model import EvaluatedLanguageModel
from robustbench_elliptical.models.weights import load_strictly

__all__ = [
    "AttentionChoice",
    "Card",
    "CheckpointFile",
    "DistilledArchitecture",
    "EncodedDocument",
    "EvaluatedLanguageModel",
    "FanArchitecture",
    "ImageArchitecture",
    "ImageCard",
    "ImageClassifier",
    "InputNormalisation",
    "LanguageCard",
    "LanguageDescription",
    "Measurement",
    "ModelChoice",
    "ModelDescription",
    "PerplexityMeasurement",
    "RvtArchitecture",
    "Task",
    "Training",
    "VisionTransformerArchitecture",
    "VocabularyFile",
    "WordEncoder",
    "build_network",
    "card_to_toml",
    "file_sha256",
    "list_models",
    "load_card",
    "load_model",
    "load_strictly",
    "parse_model",
    "read_checkpoint",
    "shipped_cards",
    "state_sha256",
]

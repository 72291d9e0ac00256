"""Language models: the paper's decoder, its weights, and whether a model sees the future.

Knows nothing about texts, vocabularies or attacks: tokens are numbers.
"""

from robustbench_elliptical.models.language.architecture import (
    BigramArchitecture,
    DecoderArchitecture,
    DecoderSizes,
    build_language_model,
)
from robustbench_elliptical.models.language.causality import CausalityFinding, causality_probe
from robustbench_elliptical.models.language.convert import convert, read_released_module
from robustbench_elliptical.models.language.decoder import LanguageModel
from robustbench_elliptical.models.language.kneser_ney import BigramModel
from robustbench_elliptical.models.language.weights import compact_state, load_language_weights

__all__ = [
    "BigramArchitecture",
    "BigramModel",
    "CausalityFinding",
    "DecoderArchitecture",
    "DecoderSizes",
    "LanguageModel",
    "build_language_model",
    "causality_probe",
    "compact_state",
    "convert",
    "load_language_weights",
    "read_released_module",
]

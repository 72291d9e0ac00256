"""Which word swaps of TextAttack can be used here."""

from typing import Annotated

from pydantic import AfterValidator

__all__ = ["REFUSED", "TransformationName", "check_transformation"]

REFUSED = {
    "ChineseWordSwapHowNet": "needs a download (OpenHowNet)",
    "ChineseWordSwapMaskedLM": "needs a download (a masked language model)",
    "WordSwapChangeLocation": "needs a download (a flair tagger)",
    "WordSwapChangeName": "needs a download (a flair tagger)",
    "WordSwapDifferentialEvolution": "is only a base for others",
    "WordSwapEmbedding": "needs a download (word embeddings)",
    "WordSwapGradientBased": "needs a model of TextAttack's own kind",
    "WordSwapHomoglyphSwap": "lacks its data file in 0.3.11; use char-noise:kind=homoglyph",
    "WordSwapHowNet": "needs a download (OpenHowNet)",
    "WordSwapInflections": "needs a download (a flair tagger)",
    "WordSwapMaskedLM": "needs a download (a masked language model)",
    "WordSwapWordNet": "needs a download (the NLTK corpus wordnet)",
}
"""Classes that can't work offline or by themselves, each with its reason."""


def check_transformation(name: str) -> str:
    """Return the name of a class; raises `ValueError` if it is empty or one of `REFUSED`."""
    if not name:
        raise ValueError("must name a class of textattack.transformations, such as WordSwapQWERTY")
    if name in REFUSED:
        raise ValueError(f"must work offline and by itself; this class {REFUSED[name]}")
    return name


TransformationName = Annotated[str, AfterValidator(check_transformation)]
"""A word swap of ``textattack.transformations`` that works offline."""

"""What every layer calls a text: documents, their words, and a vocabulary that numbers them."""

from robustbench_elliptical.core.text.document import EOS, UNK, Document
from robustbench_elliptical.core.text.vocabulary import Vocabulary

__all__ = ["EOS", "UNK", "Document", "Vocabulary"]

"""English text for language models, registered by name in `TEXT` and opened by `load_text`.

A new corpus is a new file here that subclasses `TextCorpus` and adds itself to `TEXT`; import it
below.
"""

from robustbench_elliptical.data.text.corpus import TextCorpus, TextSplit
from robustbench_elliptical.data.text.document import EOS, UNK, Document
from robustbench_elliptical.data.text.loading import load_corpus, load_text
from robustbench_elliptical.data.text.plain import PlainText
from robustbench_elliptical.data.text.sotu import StateOfTheUnion
from robustbench_elliptical.data.text.sources import TEXT, SplitName, TextSource
from robustbench_elliptical.data.text.vocabulary import Vocabulary
from robustbench_elliptical.data.text.wikitext import WikiText

__all__ = [
    "EOS",
    "TEXT",
    "UNK",
    "Document",
    "PlainText",
    "SplitName",
    "StateOfTheUnion",
    "TextCorpus",
    "TextSource",
    "TextSplit",
    "Vocabulary",
    "WikiText",
    "load_corpus",
    "load_text",
]

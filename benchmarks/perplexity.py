"""Perplexity at stride 1 against the plain loop, and the speed of a word swap."""

import time
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.rows import Row, Size
from benchmarks.subjects import SEED
from benchmarks.timing import compare
from robustbench_elliptical.attacks.text import word_swap_tokens
from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.evaluation.perplexity import sequence_losses
from robustbench_elliptical.models.architecture import AttentionChoice
from robustbench_elliptical.models.language import (
    DecoderArchitecture,
    LanguageModel,
    build_language_model,
)

__all__ = ["stride_one", "word_swap_speed"]

WINDOW = 64
VOCABULARIES = {10_000: 0.5, 267_735: 0.25}
"""Words, and the target: twice as fast as the plain loop, and four times."""
SWAP_WORDS = 1_000_000


def stride_one(size: Size) -> list[Row]:
    """Compare `sequence_losses` to one window at a time with every position's distribution."""
    rows = []
    for words, target in VOCABULARIES.items():
        model = _model(words)
        targets = 16 * size.images
        tokens = np.random.default_rng(SEED).integers(0, words, size=WINDOW + targets + 1)
        ours = partial(
            sequence_losses, model, [tokens], window=WINDOW, stride=1, batch_size=size.images
        )
        plain = partial(_plain_loop, model, tokens)
        found, wanted = ours()[0].losses, plain()
        if not np.allclose(found, wanted, rtol=1e-5):
            raise AssertionError("the two losses differ")
        ratio = compare(ours, plain, size.budget)
        measured = f"perplexity at stride 1, {words} words, window {WINDOW}, 4 layers of 128"
        loop = "one window at a time, the distribution at every position; same losses"
        rows.append(Row("stride-1", measured, loop, ratio, target, targets + WINDOW, "words"))
    return rows


def word_swap_speed(size: Size) -> list[Row]:
    """Compare a word swap on numbers to a microsecond a word."""
    words = [EOS, UNK, *(f"w{number}" for number in range(9998))]
    vocabulary = Vocabulary(words, range(10_000, 0, -1))
    tokens = np.random.default_rng(SEED).integers(0, 10_000, size=SWAP_WORDS)
    rows = []
    for replacement in ("AAA", "random-word"):
        swap = partial(
            word_swap_tokens, tokens, 0.025, "document", vocabulary, replacement=replacement
        )
        swap()
        ratio = compare(swap, partial(time.sleep, SWAP_WORDS / 1e6), size.budget)
        measured = f"word swap of {SWAP_WORDS} words at 2.5 %, {replacement}"
        rows.append(
            Row("word-swap", measured, "1 microsecond a word", ratio, 1.0, SWAP_WORDS, "words")
        )
    return rows


def _model(words: int) -> LanguageModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        architecture = DecoderArchitecture(
            vocab_size=words,
            layers=4,
            d_model=128,
            num_heads=8,
            d_head=16,
            d_inner=512,
            context_length=WINDOW,
        )
        return build_language_model(architecture, AttentionChoice(mechanism="softmax")).eval()


def _plain_loop(model: LanguageModel, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    losses: list[float] = []
    stream = torch.from_numpy(tokens)
    with torch.inference_mode():
        for start in range(len(tokens) - WINDOW):
            inputs = stream[None, start : start + WINDOW]
            targets = stream[None, start + 1 : start + WINDOW + 1]
            found = -model.log_probabilities(model(inputs)).gather(-1, targets[..., None])[0, :, 0]
            losses += found.tolist() if start == 0 else found[-1:].tolist()
    return np.array(losses)

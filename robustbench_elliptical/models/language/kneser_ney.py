"""A count model of word pairs: the floor that a neural language model has to beat."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError

__all__ = ["BigramModel"]

_UNIFORM_SHARE = 1e-3
"""Share of the continuation distribution that every word gets alike, so that none has chance 0."""


class BigramModel(nn.Module):
    """Interpolated Kneser-Ney over pairs of words (Chen & Goodman 1999, section 2.7).

    P(w | v) = max(c(v, w) - D, 0) / c(v) + D n(v) / c(v) P(w), where c counts pairs, n(v) the
    different words after v, and P(w) the different words before w, over all pairs; a thousandth of
    P is uniform. D = n1 / (n1 + 2 n2), from the pairs seen once and twice (Ney et al. 1994). After
    a word never seen, P(w). Every context's probabilities sum to 1.

    Parameters
    ----------
    vocab_size
        Number of words.
    pairs
        Number of different pairs; the counts are empty until `load_state_dict` or `count`.
    """

    first: Tensor
    """First word of each pair, int32, rising."""
    second: Tensor
    """Second word of each pair, int32, rising among those of one first word."""
    counts: Tensor
    """How often each pair was seen, int32."""

    def __init__(self, vocab_size: int, pairs: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        for name in ("first", "second", "counts"):
            self.register_buffer(name, torch.zeros(pairs, dtype=torch.int32))
        self._prepared: _Tables | None = None
        self.register_load_state_dict_post_hook(_forget)  # type: ignore[no-untyped-call]

    @classmethod
    def count(cls, tokens: npt.NDArray[np.int64], vocab_size: int) -> "BigramModel":
        """Count the pairs of a text.

        Parameters
        ----------
        tokens
            Int64, shape (tokens,).
        vocab_size
            Number of words.

        Raises
        ------
        UsageError
            If there is no pair, or a token outside the vocabulary.
        """
        if len(tokens) < 2:
            raise UsageError(f"a text must have two words to count pairs, got {len(tokens)}")
        if not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab_size:
            raise UsageError(f"tokens must lie in 0..{vocab_size - 1}, the vocabulary's words")
        keys, counts = np.unique(tokens[:-1] * vocab_size + tokens[1:], return_counts=True)
        model = cls(vocab_size, len(keys))
        state = {"first": keys // vocab_size, "second": keys % vocab_size, "counts": counts}
        model.load_state_dict({name: torch.from_numpy(each) for name, each in state.items()})
        return model.eval()

    def check(self, subject: str) -> None:
        """Refuse counts that are none; call it after loading a file.

        Raises
        ------
        UsageError
            If a pair is outside the vocabulary, twice or out of order, or a count is below 1.
        """
        keys = self.first.long() * self.vocab_size + self.second.long()
        words = torch.cat([self.first, self.second])
        if not len(words) or int(words.min()) < 0 or int(words.max()) >= self.vocab_size:
            raise UsageError(
                f"{subject}: pairs must be of words 0..{self.vocab_size - 1}; fetch the file again"
            )
        if bool((keys.diff() <= 0).any()) or int(self.counts.min()) < 1:
            raise UsageError(
                f"{subject}: pairs must rise and be counted at least once; fetch the file again"
            )

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions), float64; see `LanguageModel`.

        Only the token before a target counts, so neither window nor stride changes them.
        """
        chosen = slice(None) if positions is None else torch.as_tensor(positions)
        before, after = tokens[:, chosen], targets[:, chosen]
        return -self._tables().probabilities(before, after).log()

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """Return the distribution after each of `tokens`, shape (..., vocab_size), float64."""
        words = torch.arange(self.vocab_size, device=tokens.device)
        shape = (*tokens.shape, self.vocab_size)
        before, after = tokens[..., None].expand(shape), words.expand(shape)
        return self._tables().probabilities(before, after).log()

    def _tables(self) -> "_Tables":
        if self._prepared is None or self._prepared.keys.device != self.first.device:
            self._prepared = _Tables(self.first, self.second, self.counts, self.vocab_size)
        return self._prepared


def _forget(model: nn.Module, keys: object) -> None:
    """Drop what was computed from counts that were replaced."""
    del keys
    assert isinstance(model, BigramModel)
    model._prepared = None


class _Tables:
    """What the probabilities are computed from."""

    def __init__(self, first: Tensor, second: Tensor, counts: Tensor, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.keys = first.long() * vocab_size + second.long()
        self.counts = counts.double()
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        self.discount = once / (once + 2 * twice) if once else 0.5
        self.context = torch.zeros(vocab_size, dtype=torch.double, device=first.device)
        self.context.index_add_(0, first.long(), self.counts)
        self.followers = first.long().bincount(minlength=vocab_size).double()
        share = second.long().bincount(minlength=vocab_size).double() / len(self.keys)
        self.continuation = (1 - _UNIFORM_SHARE) * share + _UNIFORM_SHARE / vocab_size

    def probabilities(self, before: Tensor, after: Tensor) -> Tensor:
        """Return the chance of each of `after`, float64, of the same shape."""
        keys = before * self.vocab_size + after
        place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
        seen = torch.where(self.keys[place] == keys, self.counts[place], 0.0)
        total = self.context[before]
        backoff = self.continuation[after]
        kept = (seen - self.discount).clamp(min=0) + self.discount * self.followers[
            before
        ] * backoff
        return torch.where(total > 0, kept / total.clamp(min=1), backoff)

"""One document's loss, for an attack that asks the model; counts what it asks."""

from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from robustbench_elliptical.evaluation.perplexity import loss_gradient, windows
from robustbench_elliptical.evaluation.perplexity.gradients import DifferentiableScorer
from robustbench_elliptical.evaluation.text.scoring import Protocol, score
from robustbench_elliptical.models import EvaluatedLanguageModel
from robustbench_elliptical.models.language import LanguageModel

__all__ = ["DocumentOracle"]

Tokens = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]


class DocumentOracle:
    """Answers an attack on one document by the very windows that the evaluation scores.

    Parameters
    ----------
    model
        In evaluation mode; its gradients reach word vectors.
    protocol
        How it reads; documents start afresh.
    """

    def __init__(self, model: EvaluatedLanguageModel, protocol: Protocol) -> None:
        self._model = model
        self._network = cast(LanguageModel, model.network)
        self._protocol = protocol
        self.forwards = 0
        """Windows read."""
        self.backwards = 0
        """Windows that gradients went through."""

    @property
    def word_vectors(self) -> Floats:
        """The embedding of each word, shape (vocabulary, d_model)."""
        found: Floats = self._network.word_vectors.detach().cpu().numpy()
        return found

    def losses(self, tokens: Tokens) -> Floats:
        """Return the loss of each token, shape (words,); 0 for one that is not scored."""
        (found,) = score(self._model, [tokens], self._protocol)
        self.forwards += found.forwards
        return self._aligned(found.losses)

    def gradient(self, tokens: Tokens, weights: Floats) -> tuple[Floats, Floats]:
        """Return the losses and the gradient of their weighted sum, shape (words, d_model)."""
        skipped = self._protocol.unscored
        found = loss_gradient(
            cast(DifferentiableScorer, self._network),
            self._sequence(tokens),
            np.asarray(weights, dtype=np.float64)[skipped:],
            window=self._protocol.window,
            stride=self._protocol.stride,
            batch_size=self._protocol.batch_size,
            device=self._protocol.device,
        )
        self.forwards += found.forwards
        self.backwards += found.forwards
        # Inputs are all tokens but the last, after the prefix if there is one.
        gradient = np.zeros((len(tokens), found.gradient.shape[1]))
        gradient[:-1] = found.gradient[1 - skipped :]
        return self._aligned(found.losses), gradient

    def target_log_probabilities(self, tokens: Tokens, positions: npt.NDArray[np.int64]) -> Floats:
        """Return the log-probability of every word as target, shape (positions, vocabulary)."""
        sequence = self._sequence(tokens)
        places = np.asarray(positions) - self._protocol.unscored
        answers = np.zeros((len(places), self._network.vocab_size), dtype=np.float32)
        with torch.inference_mode():
            for each in windows(len(sequence) - 1, self._protocol.window, self._protocol.stride):
                wanted = np.flatnonzero((places >= each.start + each.first) & (places < each.stop))
                self.forwards += 1
                if not len(wanted):
                    continue
                inputs = torch.from_numpy(sequence[None, each.start : each.stop])
                chosen = torch.from_numpy(places[wanted] - each.start)
                device = self._protocol.device
                hidden = self._network(inputs.to(device), chosen.to(device))
                answers[wanted] = self._network.log_probabilities(hidden)[0].cpu().numpy()
        return answers

    def _sequence(self, tokens: Tokens) -> Tokens:
        prefix = self._protocol.prefix
        return tokens if prefix is None else np.append(prefix, tokens)

    def _aligned(self, losses: npt.NDArray[np.float64]) -> Floats:
        return np.append(np.zeros(self._protocol.unscored), losses)

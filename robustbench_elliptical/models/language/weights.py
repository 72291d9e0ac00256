"""A language model's weights as a small file: the tied matrix once, in half precision."""

from collections.abc import Mapping

import torch
from torch import Tensor

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language.decoder import LanguageModel
from robustbench_elliptical.models.weights import load_strictly

__all__ = ["compact_state", "load_language_weights"]

_WORDS, _TIED = "word_emb.emb_layers.0.weight", "crit.out_layers.0.weight"


def compact_state(model: LanguageModel) -> dict[str, Tensor]:
    """Return the tensors to store: parameters in float16, buffers as they are.

    The output layer's matrix is the word vectors', so it is left out; `load_language_weights` takes
    that. Frequencies of the positions stay in full precision, which half would spoil.
    """
    parameters = {name for name, _ in model.named_parameters()}
    return {
        name: (tensor.half() if name in parameters else tensor).clone()
        for name, tensor in model.state_dict().items()
        if name != _TIED
    }


def load_language_weights(model: LanguageModel, state: Mapping[str, Tensor], source: str) -> None:
    """Load a compact or a whole state dict.

    Parameters
    ----------
    model
        Changed only if everything fits.
    state
        Tensors by name.
    source
        Where they come from, for messages ("checkpoint weights.safetensors").

    Raises
    ------
    UsageError
        If a tensor is missing, unexpected, of another shape or kind, or not finite, or the output
        layer's matrix isn't that of the word vectors.
    """
    whole = dict(state)
    if _WORDS in whole:
        tied = whole.setdefault(_TIED, whole[_WORDS])
        if tied is not whole[_WORDS] and not torch.equal(tied, whole[_WORDS]):
            raise UsageError(
                f"{source}: {_TIED} must equal {_WORDS}; models whose output layer isn't tied to "
                "the word vectors are not supported"
            )
    load_strictly(model, whole, source)

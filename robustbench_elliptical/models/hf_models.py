"""Causal language models of the transformers library, from a local folder and nowhere else.

No code of the folder is run: custom classes and pickled weights are refused, and nothing is
downloaded.
"""

import inspect
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.description import LanguageDescription
from robustbench_elliptical.models.hashing import file_sha256, state_sha256
from robustbench_elliptical.models.subwords import SubwordEncoder
from robustbench_elliptical.models.text_model import EvaluatedLanguageModel

__all__ = ["PREFIX", "CausalNetwork", "load_hf"]

PREFIX = "hf:"
_LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
_NO_LIMIT = 1024
"""Window of a model whose configuration states no longest input."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
_SAVE = "save it with model.save_pretrained(DIR, safe_serialization=True)"


class CausalNetwork(nn.Module):
    """A causal language model of the transformers library, with losses as ours have them.

    Parameters
    ----------
    model
        Takes ``input_ids`` and returns something with ``.logits``.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters

    def token_losses(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """Return negative log-likelihoods, shape (batch, positions), in nats.

        Parameters
        ----------
        tokens
            Windows, int64, shape (batch, length).
        targets
            The token after each of them, same shape.
        positions
            Which positions are scored, the same in every window; None: all.
        """
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        if positions is None:
            logits = self.model(**inputs, use_cache=False).logits
        else:
            chosen = torch.as_tensor(positions, device=tokens.device)
            targets = targets[:, chosen]
            if self._keeps:
                logits = self.model(**inputs, use_cache=False, logits_to_keep=chosen).logits
            else:
                logits = self.model(**inputs, use_cache=False).logits[:, chosen]
        losses = functional.cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), reduction="none"
        )
        return losses.view(targets.shape)


def load_hf(name: str) -> EvaluatedLanguageModel:
    """Return the language model of a folder in evaluation mode, on the CPU, in float32.

    Parameters
    ----------
    name
        ``hf:DIR``; the folder holds ``config.json``, safetensors weights and ``tokenizer.json``.

    Raises
    ------
    UsageError
        If transformers isn't installed, or the folder is no such model or needs code of its own.
    """
    folder = Path(os.path.expanduser(name.removeprefix(PREFIX)))  # noqa: PTH111
    weights = _checked_files(folder, name)
    try:
        transformers = import_module("transformers")
    except ImportError:
        raise UsageError(
            f"model {name} needs the transformers library; pip install 'robustbench-elliptical[hf]'"
        ) from None
    tokenizer = _tokenizer(transformers, folder, name)
    model = _model(transformers, folder, name)
    rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise UsageError(
            f"model {name}: its tokenizer has {len(tokenizer)} tokens but its weights only "
            f"{rows}; give a folder whose tokenizer belongs to its weights"
        )
    encoder = SubwordEncoder(tokenizer)
    network = CausalNetwork(model)
    length = _context_length(model.config)
    description = LanguageDescription(
        name=name,
        source="hf",
        family=name,
        architecture={"family": "hf", "model": type(model).__name__},
        checkpoint_file=weights.name,
        checkpoint_sha256=file_sha256(weights),
        weights="model",
        weights_sha256=state_sha256(model.state_dict()),
        vocabulary_file="tokenizer.json",
        vocabulary_sha256=file_sha256(folder / "tokenizer.json"),
        vocab_size=encoder.size,
        context_length=length,
        parameters=sum(each.numel() for each in network.parameters()),
    )
    return EvaluatedLanguageModel(
        network, encoder, context_length=length, name=name, description=description
    ).eval()


def _checked_files(folder: Path, name: str) -> Path:
    """Return the weights' file, or the index of several, after a look at what else is there."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(
            f"model {name}: {folder} {problem}; give the local folder that save_pretrained wrote"
        )
    if (folder / "adapter_config.json").exists():
        raise UsageError(f"model {name} is an adapter; merge it into its base model and {_SAVE}")
    for file in ("config.json", "tokenizer.json"):
        if not (folder / file).is_file():
            raise UsageError(
                f"model {name}: {file} is missing from the folder; write it with save_pretrained "
                "of the model and of its fast tokenizer"
            )
    for file in ("model.safetensors", "model.safetensors.index.json"):
        if (folder / file).is_file():
            return folder / file
    if any(path for pattern in _PICKLES for path in folder.glob(pattern)):
        raise UsageError(
            f"model {name} is refused because its weights are no safetensors file and others may "
            f"run code; {_SAVE} where you trust it"
        )
    raise UsageError(f"model {name}: model.safetensors is missing from the folder; {_SAVE}")


def _tokenizer(transformers: Any, folder: Path, name: str) -> Any:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, use_fast=True
        )
    except Exception as error:  # whatever a broken or hostile folder makes the library raise
        raise UsageError(
            f"model {name}: its tokenizer can't be loaded ({_first_line(error)}); "
            "save it again with a fast tokenizer's save_pretrained"
        ) from None
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            f"model {name} needs a fast tokenizer, which tells where its tokens lie in the text, "
            f"got {type(tokenizer).__name__}; convert it to tokenizer.json"
        )
    return tokenizer


def _model(transformers: Any, folder: Path, name: str) -> Any:
    try:
        with torch.random.fork_rng(devices=[]):
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
    except Exception as error:  # whatever a broken or hostile folder makes the library raise
        raise UsageError(
            f"model {name} can't be loaded as a causal language model ({_first_line(error)}); "
            f"give one that transformers knows, and {_SAVE}"
        ) from None
    absent = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if absent:
        raise UsageError(
            f"model {name}: {len(absent)} tensors are missing or of another shape, {absent[0]} "
            "among them; give the weights that config.json describes"
        )
    return model.eval()


def _context_length(config: Any) -> int:
    lengths = (getattr(config, name, None) for name in _LENGTHS)
    return next((each for each in lengths if isinstance(each, int) and each > 0), _NO_LIMIT)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:160]

"""Language models of the transformers library from a folder: losses, pieces, and refusals."""

import json
import sys

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.text import EOS, UNK, Document
from robustbench_elliptical.models import load_model
from robustbench_elliptical.models.language import causality_probe

WORDS = ("My", "fellow", "citizens", ".", EOS, UNK, "caf\u00e9", "days", EOS)
DOCUMENT = Document("d", WORDS, bytes([0, 0, 0, 1, 1, 0, 0, 0, 1]))
TEXT = "My fellow citizens.\n<unk> caf\u00e9 days\n"


def test_what_is_missing_is_said_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UsageError, match=r"model hf:nowhere: nowhere does not exist"):
        load_model("hf:nowhere")
    with pytest.raises(UsageError, match=r"config\.json is missing"):
        load_model(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match=r"model\.safetensors is missing"):
        load_model(f"hf:{tmp_path}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="no safetensors file and others may run code"):
        load_model(f"hf:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UsageError, match=r"pip install 'robustbench-elliptical\[hf\]'"):
        load_model(f"hf:{tmp_path}")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(UsageError, match="is an adapter"):
        load_model(f"hf:{tmp_path}")


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def saved(transformers, tmp_path_factory):
    """A tiny GPT-2 with random weights and a byte-level tokenizer trained on one sentence."""
    tokenizers = pytest.importorskip("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=280, initial_alphabet=alphabet, special_tokens=["<|end|>", UNK]
    )
    inner.train_from_iterator(["My fellow citizens of many fellow days"] * 5, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|end|>", unk_token=UNK
    )
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    folder = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model


@pytest.fixture
def copied(saved, tmp_path):
    for file in saved[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_losses_are_those_of_the_library(saved, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("used the network"))
    folder, network = saved
    before = torch.random.get_rng_state()
    model = load_model(f"hf:{folder}")
    assert torch.equal(torch.random.get_rng_state(), before)
    size = model.description.vocab_size
    tokens = torch.randint(size, (3, 9), generator=torch.Generator().manual_seed(1))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    with torch.no_grad():
        expected = -network(inputs).logits.log_softmax(dim=-1).gather(2, targets[..., None])[..., 0]
        assert torch.allclose(model.token_losses(inputs, targets), expected, atol=1e-5)
        some = model.token_losses(inputs, targets, [7, 2])
    assert torch.allclose(some, expected[:, [7, 2]], atol=1e-5)
    assert not causality_probe(model, tokens, vocab_size=size).leaks


def test_description(saved):
    folder, network = saved
    model = load_model(f"hf:{folder}")
    description = model.description
    assert description.name == model.name == f"hf:{folder}"
    assert (description.source, description.task) == ("hf", "language-modelling")
    assert description.architecture == {"family": "hf", "model": "GPT2LMHeadModel"}
    assert description.context_length == model.context_length == 32
    assert description.vocab_size == network.config.vocab_size
    assert description.attention is description.gradient_mode is None
    assert description.checkpoint_file == "model.safetensors"
    assert description.vocabulary_file == "tokenizer.json"
    assert model.prefix == network.config.eos_token_id
    assert model.vocabulary is None
    assert not model.differentiable
    assert model.mechanisms() == []
    assert not model.training


def test_pieces_belong_to_words(saved):
    model = load_model(f"hf:{saved[0]}")
    encoded = model.encode(DOCUMENT)
    assert encoded.tokens.dtype == encoded.word_of_token.dtype == np.int64
    assert (encoded.words, encoded.bytes) == (9, len(TEXT.encode()))
    tokenizer = model._encoder._tokenizer
    assert tokenizer.decode(encoded.tokens) == TEXT
    assert (np.diff(encoded.word_of_token) >= 0).all()
    pieces = [tokenizer.decode(encoded.tokens[encoded.word_of_token == word]) for word in range(9)]
    assert pieces == DOCUMENT.pieces()
    # What the tokenizer calls its unknown token is text here, as in every other model's bytes.
    assert tokenizer.unk_token_id not in encoded.tokens
    swapped = model.encode(DOCUMENT, ("AAA",) * 4 + (EOS,) + ("AAA",) * 3 + (EOS,))
    assert tokenizer.decode(swapped.tokens) == "AAA AAA AAAAAA\nAAA AAA AAA\n"
    assert set(swapped.word_of_token) == set(range(9))
    empty = model.encode(Document("empty", ()))
    assert (empty.tokens.shape, empty.word_of_token.shape, empty.bytes) == ((0,), (0,), 0)
    with pytest.raises(ValueError, match="has 9 words, got 1"):
        model.encode(DOCUMENT, ("AAA",))


def test_pickled_weights_are_refused(copied):
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(UsageError, match="is refused because its weights are no safetensors file"):
        load_model(f"hf:{copied}")


def test_incomplete_weights_are_refused(copied):
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, "n_layer": 3}))
    with pytest.raises(UsageError, match=r"12 tensors are missing .* transformer\.h\.2"):
        load_model(f"hf:{copied}")


def test_custom_code_is_not_run(copied):
    config = json.loads((copied / "config.json").read_text())
    code = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    own = {**config, "model_type": "own", "auto_map": code}
    (copied / "config.json").write_text(json.dumps(own))
    (copied / "code.py").write_text("raise SystemExit('run')\n")
    with pytest.raises(UsageError, match="hf:"):
        load_model(f"hf:{copied}")


def test_a_tokenizer_of_another_model(copied, transformers, saved):
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(saved[0])
    tokenizer.add_tokens(["another", "word"])
    tokenizer.save_pretrained(copied)
    with pytest.raises(UsageError, match="its tokenizer has 282 tokens but its weights only 280"):
        load_model(f"hf:{copied}")

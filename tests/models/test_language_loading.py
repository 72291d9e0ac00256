"""Language models by name: what they compute, what they say, every contradiction."""

import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.text import EOS, Document
from robustbench_elliptical.models import (
    CheckpointFile,
    EvaluatedLanguageModel,
    ModelChoice,
    PerplexityMeasurement,
    VocabularyFile,
    WordEncoder,
    file_sha256,
    load_model,
    parse_model,
)
from robustbench_elliptical.models.language import causality_probe
from robustbench_elliptical.models.language.kneser_ney import BigramModel

MEASURED = PerplexityMeasurement(data="sotu", n=9, perplexity=12.5, window=16, stride=8)
DOCUMENT = Document("d", ("w0", "never", EOS, "w1", "w\u00e9", EOS), bytes([0, 0, 1, 0, 1, 1]))


@pytest.fixture
def complete(language_card_file, language_checkpoint, words_file):
    """A card beside its weights and words."""

    def write(settings=None, **fields):
        own = words_file.parent / "own.safetensors"
        own.write_bytes(language_checkpoint.read_bytes())
        files = {
            "vocabulary": VocabularyFile(file="words.txt", sha256=file_sha256(words_file)),
            "checkpoint": CheckpointFile(file="own.safetensors", sha256=file_sha256(own)),
        }
        released = {"scaling": "max", "metric_scope": "window", "scale": "none"}
        return language_card_file(settings or released, measured=(MEASURED,), **files | fields)

    return write


def test_losses_are_those_of_the_released_code(
    language_card_file, language_checkpoint, words_file, language_vectors
):
    for card, losses in ((language_card_file(), "elliptical_max"), (None, "softmax")):
        path = card or language_card_file(None)
        model = load_model(str(path), checkpoint=language_checkpoint, vocabulary=words_file)
        with torch.no_grad():
            found = model.token_losses(language_vectors["inputs"], language_vectors["targets"])
        assert (found - language_vectors[f"loss_{losses}"]).abs().max() < 1e-5
        assert not model.training


def test_description_and_promises(complete, language_vectors):
    card = complete(seed=4)
    model = load_model(str(card))
    description = model.description
    assert isinstance(model, EvaluatedLanguageModel)
    assert (model.name, description.task) == ("lm-tiny", "language-modelling")
    assert (description.source, description.family, description.seed) == ("card", "lm-tiny", 4)
    assert description.attention == "elliptical"
    assert description.attention_settings["scale"] == "none"
    assert description.gradient_mode == "detached"
    assert description.architecture["layers"] == 4
    assert (description.vocab_size, description.context_length) == (60, 16)
    assert (description.checkpoint_file, description.vocabulary_file) == (
        "own.safetensors",
        "words.txt",
    )
    assert description.parameters == sum(each.numel() for each in model.network.parameters())
    again = type(description).model_validate_json(description.model_dump_json())
    assert again == description
    way = {"window": 16, "stride": 8}
    assert description.claimed_measurement("sotu", "test", **way) == MEASURED
    assert description.claimed_measurement("sotu", "valid", **way) is None
    assert description.claimed_measurement("sotu", "test", window=16, stride=16) is None
    assert description.claimed_measurement("text:sotu", "test", **way) is None
    assert description.claimed_measurement("sotu", "test", context="stream", **way) is None
    twin = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        pair = language_vectors["inputs"], language_vectors["targets"]
        assert torch.equal(twin.token_losses(*pair), model.token_losses(*pair))


def test_controls_are_models_of_their_own(complete, language_vectors):
    card = complete()
    through = parse_model(f"{card},gradient_mode=through").load()
    assert through.name == "lm-tiny,gradient_mode=through"
    assert through.description.measured == (MEASURED,)
    assert through.description.gradient_mode == "through"
    through.set_gradient_mode("detached")
    assert through.description.gradient_mode == "detached"
    assert {each.gradient_mode for each in through.mechanisms()} == {"detached"}
    choice = parse_model(f"{card},metric=identity,metric_scope=prefix,scale=sqrt")
    assert choice.task == "language-modelling"
    plain = choice.load()
    assert plain.name == "lm-tiny,metric=identity,metric_scope=prefix,scale=sqrt"
    assert plain.description.measured == ()
    with torch.no_grad():
        losses = plain.token_losses(language_vectors["inputs"], language_vectors["targets"])
    assert (losses - language_vectors["loss_softmax"]).abs().max() < 1e-5


def test_the_causality_probe_takes_it(complete, language_vectors):
    inputs, targets = language_vectors["inputs"], language_vectors["targets"]
    windows = torch.cat((inputs, targets[:, -1:]), dim=1)
    leaking = load_model(str(complete()))
    assert causality_probe(leaking, windows, vocab_size=leaking.description.vocab_size).leaks
    causal = load_model(str(complete()), attention={"metric_scope": "prefix"})
    assert not causality_probe(causal, windows, vocab_size=60).leaks


def test_documents_as_words(complete, words):
    model = load_model(str(complete()))
    encoded = model.encode(DOCUMENT)
    assert encoded.tokens.dtype == encoded.word_of_token.dtype == np.int64
    assert encoded.tokens.tolist() == [2, words.unk, words.eos, 3, words.unk, words.eos]
    assert encoded.word_of_token.tolist() == list(range(6))
    assert encoded.words == 6
    assert encoded.bytes == len("w0 never\nw1w\u00e9\n".encode()) == 15
    swapped = model.encode(DOCUMENT, ("w5", "w6", EOS, "w7", "w8", EOS))
    assert swapped.tokens.tolist() == [7, 8, words.eos, 9, 10, words.eos]
    assert swapped.bytes == len("w5 w6\nw7w8\n")
    with pytest.raises(ValueError, match="has 6 words, got 1"):
        model.encode(DOCUMENT, ("w5",))
    assert (model.prefix, model.vocabulary.words) == (words.eos, words.words)
    assert model.differentiable


def test_a_network_of_ones_own(complete, words):
    network = load_model(str(complete())).network
    own = EvaluatedLanguageModel(network, WordEncoder(words), context_length=16, name="mine")
    assert own.description.source == "python"
    assert own.description.vocab_size == 60
    with pytest.raises(UsageError, match="model mine must have a method token_losses"):
        EvaluatedLanguageModel(
            torch.nn.Linear(1, 1), WordEncoder(words), context_length=16, name="mine"
        )


def test_other_weights_and_words_keep_no_promise(complete, tmp_path, words):
    card = complete()
    other = tmp_path / "other.safetensors"
    state = load_file(tmp_path / "own.safetensors")
    state["crit.out_layers.0.bias"] += 1
    save_file(state, other)
    brought = load_model(str(card), checkpoint=other)
    assert brought.name == "lm-tiny,checkpoint=other"
    assert brought.description.measured == ()
    copy = tmp_path / "copy.txt"
    copy.write_bytes((tmp_path / "words.txt").read_bytes())
    assert load_model(str(card), vocabulary=copy).description.measured == (MEASURED,)
    type(words)([*words.words[:-1], "last"]).save(copy)
    renamed = parse_model(f"{card},vocabulary={copy}").load()
    assert renamed.name == "lm-tiny,vocabulary=copy"
    assert renamed.description.measured == ()


def test_files_that_changed_are_refused(complete, tmp_path, words):
    card = complete()
    type(words)([*words.words[:-1], "last"]).save(tmp_path / "words.txt")
    with pytest.raises(UsageError, match=r"vocabulary .* must have the SHA-256.*vocabulary=PATH"):
        load_model(str(card))
    save_file({"a": torch.zeros(1)}, tmp_path / "own.safetensors")
    with pytest.raises(UsageError, match=r"checkpoint .* must have the SHA-256"):
        load_model(str(card), vocabulary=tmp_path / "words.txt")


def test_what_does_not_fit(
    language_card_file, language_checkpoint, words_file, words, released_module
):
    card = str(language_card_file())
    with pytest.raises(UsageError, match=r"lm-tiny comes without its vocabulary.*vocabulary=PATH"):
        load_model(card, checkpoint=language_checkpoint)
    with pytest.raises(UsageError, match="lm-tiny comes without weights"):
        load_model(card, vocabulary=words_file)
    with pytest.raises(UsageError, match=r"no\.txt does not exist"):
        load_model(card, checkpoint=language_checkpoint, vocabulary="no.txt")
    with pytest.raises(UsageError, match="models convert"):
        load_model(card, checkpoint=released_module, vocabulary=words_file)
    type(words)(words.words[:-1]).save(words_file)
    with pytest.raises(UsageError, match="weights are for 60 words but the vocabulary has 59"):
        load_model(card, checkpoint=language_checkpoint, vocabulary=words_file)
    with pytest.raises(UsageError, match="classifies images, so it takes no vocabulary"):
        load_model("deit-micro-softmax", vocabulary=words_file)
    with pytest.raises(UsageError, match=r"must state|no prefix"):
        load_model(card, attention={"metric_scope": "prefix", "statistic": "median"})


def test_a_bigram_model(language_card_file, words_file, words, tmp_path):
    text = np.random.default_rng(0).integers(0, len(words), 300)
    counted = BigramModel.count(text, len(words))
    save_file(counted.state_dict(), tmp_path / "floor.safetensors")
    sizes = {"family": "bigram", "vocab_size": len(words), "pairs": len(counted.counts)}
    card = language_card_file(None, name="floor", architecture=sizes, attention=None)
    brought = f"{card},checkpoint={tmp_path / 'floor.safetensors'},vocabulary={words_file}"
    model = parse_model(brought).load()
    tokens = torch.from_numpy(text).view(3, 100)
    pair = tokens[:, :-1], tokens[:, 1:]
    assert torch.equal(model.token_losses(*pair), counted.token_losses(*pair))
    assert not model.differentiable
    assert model.mechanisms() == []
    model.set_gradient_mode("through")
    description = model.description
    assert description.attention is description.gradient_mode is None
    assert (description.name, description.context_length) == ("floor", 256)
    assert model.encode(DOCUMENT).words == 6
    with pytest.raises(UnknownNameError, match=r"option of model .* 'metric': known: card"):
        parse_model(f"{brought},metric=identity")
    with pytest.raises(UsageError, match="floor has no attention"):
        load_model(str(card), attention={"metric": "identity"})
    state = counted.state_dict()
    state["counts"][0] = 0
    save_file(state, tmp_path / "floor.safetensors")
    with pytest.raises(UsageError, match=r"floor\.safetensors: pairs must rise"):
        parse_model(brought).load()


def test_choices(language_card_file, words_file):
    card = language_card_file()
    choice = parse_model(f"{card},vocabulary={words_file},checkpoint=w,metric=random")
    assert choice == ModelChoice(
        str(card), checkpoint="w", attention={"metric": "random"}, vocabulary=str(words_file)
    )
    assert parse_model("deit-micro-softmax").task == "image-classification"
    assert parse_model("timm:x,checkpoint=w").task == "image-classification"
    assert parse_model("hf:x").task == "language-modelling"
    with pytest.raises(UnknownNameError, match=r"option of model .* 'vocabulry': did you mean"):
        parse_model(f"{card},vocabulry=x")
    with pytest.raises(UnknownNameError, match="known: card, checkpoint, weights"):
        parse_model("deit-micro-softmax,vocabulary=x")
    with pytest.raises(UnknownNameError, match="option of model hf:x 'metric'"):
        parse_model("hf:x,metric=identity")
    with pytest.raises(UsageError, match="takes no options"):
        load_model("hf:x", checkpoint="w")


def test_paths_on_the_command_line_may_hold_commas(complete, language_checkpoint):
    card = complete()
    folder = card.parent / "seeds 1,2, and 3"
    folder.mkdir()
    checkpoint = folder / "own.safetensors"
    checkpoint.write_bytes(language_checkpoint.read_bytes())
    choice = parse_model(f"{card},checkpoint={checkpoint},metric=identity")
    assert (choice.checkpoint, choice.attention) == (str(checkpoint), {"metric": "identity"})
    assert choice.load().description.checkpoint_file == checkpoint.name

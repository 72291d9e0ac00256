"""Models by name: every form, what the description says, and every contradiction."""

import json
import pickle

import pytest
import timm
import torch
from safetensors.torch import save_file

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.models import (
    CheckpointFile,
    Measurement,
    ModelChoice,
    file_sha256,
    load_model,
    parse_model,
    read_checkpoint,
    state_sha256,
)
from robustbench_elliptical.models.attention import EllipticalSettings

MEASURED = (Measurement(data="test", n=10, correct=9),)


@pytest.fixture(scope="module")
def deit_tiny(tmp_path_factory):
    """timm's own DeiT-tiny with random weights, and its state dict in a file."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = timm.create_model("deit_tiny_patch16_224", pretrained=False).eval()
    path = tmp_path_factory.mktemp("timm") / "deit_tiny.safetensors"
    save_file(network.state_dict(), path)
    return network, path


@pytest.fixture
def images224():
    return torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def card_with_checkpoint(card_file, vector_checkpoint, tmp_path):
    """A card beside its own checkpoint, which is the averaged weights of the vectors."""
    state = read_checkpoint(vector_checkpoint, weights="model_ema")
    save_file(state, tmp_path / "own.safetensors")
    entry = CheckpointFile(file="own.safetensors", sha256=file_sha256(tmp_path / "own.safetensors"))
    return card_file(checkpoint=entry, measured=MEASURED, seed=4)


# --- The forms


def test_a_shipped_card_takes_timms_weights(deit_tiny, images224):
    network, path = deit_tiny
    elliptical = load_model("deit-tiny-elliptical", checkpoint=path)
    assert elliptical.description.parameters == 5_717_416
    assert list(elliptical.network.state_dict()) == list(network.state_dict())
    softmax = load_model("deit-tiny-softmax", checkpoint=path)
    with torch.no_grad():
        mean, std = (
            torch.tensor(each).view(1, 3, 1, 1)
            for each in (softmax.description.mean, softmax.description.std)
        )
        expected = network((images224 - mean) / std)
        assert torch.allclose(softmax(images224), expected, atol=1e-5)
        assert not torch.allclose(elliptical(images224), expected, atol=1e-3)
        identity = load_model(
            "deit-tiny-elliptical", checkpoint=path, attention={"metric": "identity"}
        )
        assert torch.allclose(identity(images224), expected, atol=1e-5)


def test_timm_by_name(deit_tiny, images224):
    network, path = deit_tiny
    model = load_model("timm:deit_tiny_patch16_224", checkpoint=path)
    description = model.description
    with torch.no_grad():
        mean, std = (
            torch.tensor(each).view(1, 3, 1, 1) for each in (description.mean, description.std)
        )
        assert torch.allclose(model(images224), network((images224 - mean) / std), atol=1e-5)
    assert description.name == model.name == "timm:deit_tiny_patch16_224"
    assert description.source == "timm"
    assert description.attention is None
    assert description.gradient_mode is None
    assert description.parameters == 5_717_416
    assert description.mean == (0.485, 0.456, 0.406)
    assert description.preprocessing.resize == 248  # timm's 0.9 crop, not DeiT's 256
    assert description.preprocessing.image_size == 224
    assert model.input_shape == (3, 224, 224)
    assert description.weights_sha256 == state_sha256(network.state_dict())


def test_checkpoint_with_a_card(card_file, vector_checkpoint, vectors):
    model = load_model(str(vector_checkpoint), card=card_file(measured=MEASURED))
    same = load_model(str(card_file(measured=MEASURED)), checkpoint=vector_checkpoint)
    named = load_model("elliptical-max", card=card_file(), checkpoint=vector_checkpoint)
    assert not model.training
    assert all(each.dtype == torch.float32 for each in model.state_dict().values())
    assert all(each.requires_grad for each in model.parameters())
    for other in (same, named):
        assert torch.equal(model(vectors["inputs"]), other(vectors["inputs"]))
        assert other.description.weights_sha256 == model.description.weights_sha256
    # The card has no weights of its own, so what it measured is about those that are brought.
    assert model.description.claimed_accuracy("test") == 0.9


def test_a_card_with_its_own_checkpoint(card_with_checkpoint, vector_checkpoint):
    own = load_model(str(card_with_checkpoint)).description
    assert own.checkpoint_file == "own.safetensors"
    assert own.claimed_accuracy("test") == 0.9
    assert load_model("elliptical-max", card=card_with_checkpoint).description == own
    assert (own.family, own.seed) == ("elliptical_max", 4)
    averaged = load_model(
        str(card_with_checkpoint), checkpoint=vector_checkpoint, weights="model_ema"
    ).description
    assert averaged.weights_sha256 == own.weights_sha256
    assert averaged.checkpoint_sha256 != own.checkpoint_sha256
    assert averaged.weights == "model_ema"
    # Weights that are not the card's: its promise is not about them.
    assert averaged.measured == ()


def test_a_checkpoint_that_changed_is_refused(card_with_checkpoint):
    own = card_with_checkpoint.parent / "own.safetensors"
    state = read_checkpoint(own)
    state["head.bias"] += 1
    save_file(state, own)
    with pytest.raises(UsageError, match="must have the SHA-256"):
        load_model(str(card_with_checkpoint))
    load_model(str(card_with_checkpoint), checkpoint=own)


# --- What the description says


def test_description_is_complete_and_plain_json(card_file, vector_checkpoint):
    description = load_model(
        str(vector_checkpoint),
        card=card_file(measured=MEASURED),
        attention={"metric": "constant", "blocks": [1, 3]},
    ).description
    assert description.name == "elliptical-max,blocks=1+3,metric=constant"
    assert description.attention == "elliptical"
    resolved = {
        "scaling": "max",
        "statistic": "mean",
        "blocks": [1, 3],
        "delta": 1.0,
        "metric": "constant",
        "gradient_mode": "detached",
    }
    assert description.attention_settings.items() >= resolved.items()
    assert description.attention_settings.keys() == EllipticalSettings.model_fields.keys()
    assert description.attention_overrides == {"metric": "constant", "blocks": [1, 3]}
    assert description.measured == ()  # measured with the card's own attention
    assert description.checkpoint_file == "checkpoint.pth"
    assert description.architecture["depth"] == 4
    again = type(description).model_validate_json(json.dumps(description.model_dump(mode="json")))
    assert again == description


def test_gradient_mode_changes_no_promise(card_file, vector_checkpoint):
    model = load_model(
        str(vector_checkpoint),
        card=card_file(measured=MEASURED),
        attention={"gradient_mode": "through"},
    )
    assert model.name == "elliptical-max,gradient_mode=through"
    assert model.description.gradient_mode == "through"
    assert model.description.claimed_accuracy("test") == 0.9
    assert all(each.gradient_mode == "through" for each in model.mechanisms())
    softmax = load_model(str(vector_checkpoint), card=card_file("softmax"))
    assert softmax.description.gradient_mode is None


def test_loading_leaves_the_global_generator_alone(vector_model):
    before = torch.random.get_rng_state()
    vector_model()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_loaded_model_pickles(vector_model, vectors):
    model = vector_model()
    twin = pickle.loads(pickle.dumps(model))
    assert torch.equal(twin(vectors["inputs"]), model(vectors["inputs"]))
    assert twin.description == model.description


# --- Contradictions and mistakes


def test_a_checkpoint_without_a_card_says_why(vector_checkpoint):
    with pytest.raises(UsageError, match="Elliptical and a softmax checkpoint hold the same"):
        load_model(str(vector_checkpoint))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("deit-tiny-eliptical", UnknownNameError, "did you mean 'deit-tiny-elliptical'"),
        ("no/such/file.pth", UnknownNameError, "no file no/such/file.pth either.*card=CARD"),
        ("deit-tiny-elliptical,delta=1", UnknownNameError, "for parse_model or the command line"),
        (".", UnknownNameError, "It is a folder; name the file in it"),
        ("nothing.toml", UnknownNameError, "There is no file nothing.toml either"),
        ("deit-tiny-elliptical", UsageError, "comes without weights; .* checkpoint=PATH"),
        ("timm:deit_tiny_patch16_224", UsageError, "checkpoint=PATH; nothing is downloaded"),
    ],
)
def test_names_that_do_not_load(name, error, message):
    with pytest.raises(error, match=message):
        load_model(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:deit_tny_patch16_224", "did you mean 'deit_tiny_patch16_224'"),
        ("timm:hf-hub:someone/model", "unknown timm model 'hf-hub:someone/model'"),
        ("timm:deit_tiny_patch16_224.nope", "Invalid pretrained tag"),
        ("timm:", "unknown timm model ''"),
        ("timm:vit_small_patch14_dinov2", "has no classifier"),
    ],
)
def test_timm_names(name, message, vector_checkpoint):
    with pytest.raises(UsageError, match=message):
        load_model(name, checkpoint=vector_checkpoint)


def test_the_wrong_architecture_is_listed(vector_checkpoint):
    with pytest.raises(UsageError, match=r"152 tensors: .*96 missing.*of another shape") as caught:
        load_model("deit-tiny-softmax", checkpoint=vector_checkpoint)
    assert str(vector_checkpoint) in str(caught.value)


def test_arguments_that_contradict_each_other(card_file, vector_checkpoint):
    path = str(vector_checkpoint)
    with pytest.raises(UsageError, match="neither a card nor attention settings"):
        load_model("timm:deit_tiny_patch16_224", checkpoint=path, attention={"scaling": "max"})
    with pytest.raises(UsageError, match="must be the card's name 'elliptical-max'"):
        load_model("another", checkpoint=path, card=card_file())
    with pytest.raises(UnknownNameError, match=r"unknown card 'deit-tny-softmax': did you mean"):
        load_model(path, card="deit-tny-softmax")
    with pytest.raises(UsageError, match="cannot read card"):
        load_model(path, card="no-such.toml")
    with pytest.raises(UnknownNameError, match="setting of attention softmax 'metric'"):
        load_model(path, card=card_file("softmax"), attention={"metric": "identity"})
    with pytest.raises(UsageError, match=r"must lie in 1\.\.3"):
        load_model(path, card=card_file(), attention={"blocks": [4]})
    with pytest.raises(UsageError, match=r"device must be one that torch knows.*'gpu'"):
        load_model(path, card=card_file(), device="gpu")
    with pytest.raises(UsageError, match="device cuda:99 is not there"):
        load_model(path, card=card_file(), device="cuda:99")


# --- The command line's form


def test_parse_a_name_alone():
    assert parse_model("deit-tiny-elliptical") == ModelChoice("deit-tiny-elliptical")


def test_parse_everything(card_file, vector_checkpoint):
    card = card_file()
    text = (
        f"elliptical-max,checkpoint={vector_checkpoint},card={card},weights=model_ema,"
        "metric=constant,delta=2,blocks=1+3,gradient-mode=through"
    )
    choice = parse_model(text)
    assert choice == ModelChoice(
        "elliptical-max",
        checkpoint=str(vector_checkpoint),
        card=str(card),
        weights="model_ema",
        attention={
            "metric": "constant",
            "delta": 2.0,
            "blocks": [1, 3],
            "gradient_mode": "through",
        },
    )
    model = choice.load()
    assert model.name == (
        "elliptical-max,blocks=1+3,delta=2.0,gradient_mode=through,metric=constant"
        ",weights=model_ema"
    )
    # The name is itself a way to write the model.
    again = parse_model(f"{model.name},checkpoint={vector_checkpoint},card={card}")
    assert again.attention == choice.attention


@pytest.mark.parametrize(
    ("written", "value"), [("all-but-first", "all-but-first"), ("2", [2]), ("1+2", [1, 2])]
)
def test_lists_are_written_with_plus(written, value):
    choice = parse_model(f"deit-tiny-elliptical,blocks={written}")
    assert choice.attention == {"blocks": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "model must be NAME or NAME,key=value"),
        (",metric=identity", "model must be NAME"),
        ("deit-tiny-elliptical,", "must be key=value"),
        ("deit-tiny-elliptical,identity", "must be key=value,..., got 'identity'"),
        ("deit-tiny-elliptical,metrik=identity", "did you mean 'metric'"),
        ("deit-tiny-elliptical,chekpoint=x", "did you mean 'checkpoint'"),
        ("deit-tiny-softmax,metric=identity", "known: card, checkpoint, weights"),
        ("timm:vit_tiny_patch16_224,metric=identity", "known: card, checkpoint, weights"),
        ("deit-tiny-elliptical,metric=none", "metric: input should be"),
        ("deit-tiny-elliptical,delta=much", "delta: input should be a valid number"),
        ("deit-tiny-elliptical,blocks=0+1", "block 0 has no previous values"),
        ("deit-tiny-elliptical,blocks=1+x", "blocks"),
        ("deit-tiny-elliptical,weights=ema", "must be model or model_ema, got 'ema'"),
        ("deit-tiny-elliptical,delta=1,delta=2", "delta .* is given twice"),
        ("deit-tny-elliptical", "did you mean 'deit-tiny-elliptical'"),
    ],
)
def test_mistakes_on_the_command_line(text, message):
    with pytest.raises(UsageError, match=message):
        parse_model(text)


def test_brought_weights_do_not_pass_for_the_shipped_model(tmp_path):
    shipped_model = load_model("deit-micro-softmax")
    other = tmp_path / "mine.safetensors"
    save_file(shipped_model.network.state_dict(), other)
    model = load_model("deit-micro-softmax", checkpoint=other)
    assert model.name == "deit-micro-softmax,checkpoint=mine"
    assert model.description.seed is None
    assert model.description.measured == ()
    assert (shipped_model.name, shipped_model.description.seed) == ("deit-micro-softmax", 0)

"""`models list`, `show` and `convert` for language models."""

import json
import tomllib
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from robustbench_elliptical.core.text import EOS, UNK, Vocabulary
from robustbench_elliptical.models import (
    AttentionChoice,
    LanguageCard,
    PerplexityMeasurement,
    VocabularyFile,
    card_to_toml,
    file_sha256,
    list_models,
    load_card,
    load_model,
)

DATA = Path(__file__).parents[1] / "data"
SETTINGS = {"scaling": "max", "metric_scope": "window", "scale": "none"}
MEASURED = PerplexityMeasurement(data="sotu", n=9, perplexity=96.04, window=96, stride=48)


@pytest.fixture(params=["lm_format", "lm_format_adaptive"])
def released(request):
    return DATA / request.param


@pytest.fixture
def make_card(released):
    config = json.loads((released / "config.json").read_text())

    def make(**fields) -> LanguageCard:
        attention = AttentionChoice(mechanism="elliptical", settings=SETTINGS)
        values = {
            "name": "released",
            "family": "released",
            "architecture": {
                "vocab_size": config["vocab_size"],
                "layers": config["n_layer"],
                "d_model": config["d_model"],
                "num_heads": config["n_head"],
                "d_head": config["d_head"],
                "d_inner": config["d_inner"],
                "context_length": config["context_length"],
                "cutoffs": config["cutoffs"],
            },
            "attention": attention,
            "measured": (MEASURED,),
            **fields,
        }
        return LanguageCard(**values)

    return make


@pytest.fixture
def card(tmp_path, make_card):
    path = tmp_path / "mine.toml"
    path.write_text(card_to_toml(make_card()), encoding="utf-8")
    return path


@pytest.fixture
def words(tmp_path, make_card):
    size = make_card().architecture.vocab_size
    Vocabulary([EOS, UNK, *(f"w{number}" for number in range(size - 2))]).save(
        tmp_path / "words.txt"
    )
    return tmp_path / "words.txt"


@pytest.fixture
def convert(elliptical_robust, released, card):
    def call(*words, model=released / "model.pt", card=card, output="out/deep"):
        parts = ("models", "convert", model, "--card", card, "--output", output)
        return elliptical_robust(*parts, *words)

    return call


def assert_released_losses(model, released):
    expected = load_file(released / "expected.safetensors")
    with torch.no_grad():
        losses = model.token_losses(expected["inputs"].T, expected["targets"].T)
    assert (losses - expected["loss_elliptical_max"].T).abs().max() < 1e-5


def test_what_is_converted_loads_and_computes_the_same(
    convert, elliptical_robust, released, card, words, tmp_path
):
    code, out, err = convert("--vocabulary", words)
    assert (code, err) == (0, "")
    folder = tmp_path / "out" / "deep"
    names = ["released.safetensors", "released.toml", "words.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        assert f"out/deep/{name}" in out
    converted = folder / "released.toml"
    assert_released_losses(load_model(str(converted)), released)
    # The same weights as plain tensors, and under the card that has none of its own.
    plain = released / "state_dict.safetensors"
    same = load_model(str(card), checkpoint=plain, vocabulary=words)
    assert_released_losses(same, released)
    description = load_model(str(converted)).description
    assert description.weights_sha256 == same.description.weights_sha256
    assert description.measured == (MEASURED,)
    stored = load_file(folder / "released.safetensors")
    assert {each.dtype for each in stored.values()} == {torch.float32}
    assert set(load_file(plain)) - set(stored) == {"crit.out_layers.0.weight"}
    code, out, _ = elliptical_robust("models", "show", converted)
    assert code == 0
    assert file_sha256(folder / "released.safetensors") in out
    assert file_sha256(folder / "words.txt") in out
    code, out, _ = elliptical_robust("models", "show", converted, "--json")
    assert json.loads(out)["vocabulary"]["file"] == "words.txt"


def test_the_vocabulary_that_the_card_names(convert, card, make_card, words, tmp_path):
    stated = VocabularyFile(file="words.txt", sha256=file_sha256(words))
    card.write_text(card_to_toml(make_card(vocabulary=stated)))
    assert convert()[0] == 0
    # A second model shares it.
    card.write_text(card_to_toml(make_card(name="second", vocabulary=stated)))
    assert convert()[0] == 0
    assert len(list((tmp_path / "out" / "deep").iterdir())) == 5
    other = tmp_path / "other.txt"
    other.write_text(words.read_text().replace("w3 ", "other "))
    code, _, err = convert("--vocabulary", other, output="another")
    assert (code, err.count("\n")) == (2, 1)
    assert "other.txt must have the SHA-256" in err
    words.unlink()
    code, _, err = convert(output="another")
    assert (code, err.count("\n")) == (2, 1)
    assert "words.txt; give the words" in err
    assert not (tmp_path / "another").exists()


def test_hostile_and_wrong_input_writes_nothing(convert, card, make_card, words, tmp_path):
    hostile = tmp_path / "hostile.pt"
    mark = tmp_path / "mark"
    with zipfile.ZipFile(hostile, "w") as archive:
        command = f"touch {mark}"
        archive.writestr("model/data.pkl", f"cposix\nsystem\n(S'{command}'\ntR.".encode())
    short = tmp_path / "short.txt"
    short.write_text("".join(words.read_text().splitlines(keepends=True)[:-1]))
    wider = make_card().architecture.model_copy(update={"d_inner": 65})
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(card_to_toml(make_card(architecture=wider)))
    before = sorted(tmp_path.iterdir())
    cases = [
        ((), {}, "--vocabulary FILE"),
        (("--vocabulary", words), {"model": hostile}, "posix.system"),
        (("--vocabulary", words), {"model": "no.pt"}, "no.pt"),
        (("--vocabulary", "no.txt"), {}, "no.txt does not exist"),
        (("--vocabulary", short), {}, "words but the vocabulary has"),
        (("--vocabulary", words), {"card": wrong}, "of another shape"),
        (("--vocabulary", words), {"card": "deit-micro-softmax"}, "must describe a language model"),
        (("--vocabulary", words), {"card": "deit-micro-sofmax"}, "did you mean"),
        (("--vocabulary", words), {"output": words}, "cannot write to"),
    ]
    for options, changes, message in cases:
        code, out, err = convert(*options, **changes)
        assert (code, out) == (2, ""), message
        assert message in err
        assert err.startswith("Error: ")
        assert err.count("\n") == 1
        assert sorted(tmp_path.iterdir()) == before
    assert not mark.exists()


@pytest.mark.parametrize("name", ["released.toml", "released.safetensors", "words.txt"])
def test_existing_files_stay(name, convert, words, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    code, _, err = convert("--vocabulary", words, output="out")
    assert code == 2
    assert f"out/{name} exists" in err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    assert (tmp_path / "out" / name).read_text() == "mine"


def test_a_failure_while_moving_takes_everything_back(convert, words, tmp_path, monkeypatch):
    rename = Path.rename

    def failing(path, target):
        if path.suffix == ".toml":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    before = sorted(tmp_path.iterdir())
    code, _, err = convert("--vocabulary", words)
    assert code == 2
    assert "No space left" in err
    assert sorted(tmp_path.iterdir()) == before


def test_list_has_a_table_for_each_task(elliptical_robust, card, make_card, monkeypatch):
    floor = make_card(
        name="floor",
        architecture={"family": "bigram", "vocab_size": 60, "pairs": 77},
        attention=None,
        measured=(),
    )
    cards = [*list_models(), load_card(card), floor]
    monkeypatch.setattr("robustbench_elliptical.models.list_models", lambda: cards)
    code, out, _ = elliptical_robust("models", "list")
    assert code == 0
    images, language = out.split("language-modelling")
    assert "image-classification" in images
    assert "deit-micro-softmax" in images
    assert "deit" not in language
    sizes = load_card(card).architecture
    cells = ["released", "elliptical metric_scope=window scale=none"]
    cells += [f"{sizes.d_model}x{sizes.layers}", "96.04 on sotu (test)", "77 pairs", "unknown"]
    for cell in cells:
        assert cell in language
    code, out, _ = elliptical_robust("models", "list", "--json")
    tasks = {each["name"]: each["task"] for each in json.loads(out)}
    assert tasks["floor"] == "language-modelling"
    assert tasks["deit-micro-softmax"] == "image-classification"


def test_flags_are_listed_and_shown_below_the_card(elliptical_robust):
    _, out, _ = elliptical_robust("models", "list")
    flags = {row[1].strip(): row[3].strip() for row in map(cells, out.splitlines()) if len(row) > 5}
    assert flags["deit-micro-primal"] == "auxiliary-loss"
    assert flags["rvt-tiny-plus"] == "fixed-length"
    assert flags["deit-micro-softmax"] == ""
    assert flags["lm-micro-elliptical"] == "causal, detached"
    assert flags["lm-micro-elliptical-released"] == "not causal, detached"
    assert flags["kneser-ney-sotu"] == ""
    _, out, _ = elliptical_robust("models", "show", "lm-micro-elliptical-released")
    assert tomllib.loads(out)["name"] == "lm-micro-elliptical-released"
    (leak,) = [line for line in out.splitlines() if line.startswith("# causal: ")]
    assert leak.startswith("# causal: leaks (")
    assert "later tokens reach earlier outputs" in leak
    _, out, _ = elliptical_robust("models", "show", "kneser-ney-sotu")
    assert "# " not in out


def cells(line: str) -> list[str]:
    return line.split("│")

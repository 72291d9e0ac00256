import gzip
import json
import struct

import numpy as np
import pytest

from robustbench_elliptical import __version__
from robustbench_elliptical.attacks import ATTACKS
from robustbench_elliptical.attacks.text import TEXT_ATTACKS
from robustbench_elliptical.models import list_models
from robustbench_elliptical.results import read_results


def test_version(elliptical_robust):
    assert elliptical_robust("version") == (0, f"{__version__}\n", "")
    code, out, _ = elliptical_robust("version", "--json")
    assert code == 0
    assert json.loads(out)["robustbench-elliptical"] == __version__


def test_models(elliptical_robust):
    code, out, _ = elliptical_robust("models", "list")
    assert code == 0
    for card in list_models():
        assert card.name in out
    code, out, _ = elliptical_robust("models", "list", "--json")
    assert [each["name"] for each in json.loads(out)] == [card.name for card in list_models()]
    code, out, _ = elliptical_robust("models", "show", "deit-micro-elliptical")
    assert code == 0
    assert 'mechanism = "elliptical"' in out
    code, _, err = elliptical_robust("models", "show", "deit-micro-eliptical")
    assert code == 2
    assert "did you mean 'deit-micro-elliptical'" in err


def test_attacks(elliptical_robust):
    code, out, _ = elliptical_robust("attacks", "list")
    assert code == 0
    names = [*ATTACKS.names(), *TEXT_ATTACKS.names()]
    for name in names:
        assert name in out
    code, out, _ = elliptical_robust("attacks", "list", "--json")
    assert [each["name"] for each in json.loads(out)] == names
    for name in names:
        code, out, _ = elliptical_robust("attacks", "show", name)
        assert code == 0
        assert out.startswith(f"{name} (")
    code, out, _ = elliptical_robust("attacks", "show", "pgd")
    assert code == 0
    assert "steps=20" in out
    code, out, _ = elliptical_robust("attacks", "show", "pgd", "--json")
    assert "step_size" in json.loads(out)["properties"]
    assert elliptical_robust("attacks", "show", "pdg")[0] == 2


@pytest.mark.parametrize("words", [["evil"], ["eval", "--no-such"], ["models", "show"]])
def test_usage_errors_leave_with_2(elliptical_robust, words):
    code, _, err = elliptical_robust(*words)
    assert code == 2
    assert "Traceback" not in err


@pytest.fixture
def fashion_mnist(tmp_path):
    """A folder in Fashion-MNIST's own format with few images."""
    folder = tmp_path / "fashion"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for prefix, count in (("train", 160), ("t10k", 20)):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb") as stream:
            stream.write(header + images.tobytes())
        with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz", "wb") as stream:
            stream.write(struct.pack(">II", 0x801, count) + labels.tobytes())
    return folder


def test_train_writes_a_model_that_eval_takes(elliptical_robust, fashion_mnist, tmp_path):
    words = ("train", "deit-micro", "--attention", "elliptical")
    words += ("--data", f"fashion-mnist:{fashion_mnist}", "--seed", 4, "--output", "trained")
    code, out, err = elliptical_robust(*words)
    assert (code, err) == (0, "")
    assert "deit-micro-elliptical-seed4:" in out
    card = tmp_path / "trained" / "deit-micro-elliptical-seed4.toml"
    assert "--seed 4" in card.read_text()
    code, _, err = elliptical_robust(
        "eval", "--model", card, "--data", f"fashion-mnist:{fashion_mnist}", "--attack", "fgsm"
    )
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": "deit-mikro"}, "did you mean 'deit-micro'"),
        ({"--attention": "eliptical"}, "did you mean 'elliptical'"),
        ({"--data": "npz:x.npz"}, "must be fashion-mnist:DIR"),
        ({"--data": "fashion-mnist:nowhere"}, "nowhere"),
        ({"--data": "fashion-mnist"}, "fashion-mnist:DIR"),
        ({"recipe": "lm-micro"}, "--data of recipe lm-micro must be sotu"),
        ({"recipe": "kneser-ney", "--data": "sotu"}, "has no attention, got --attention softmax"),
    ],
)
def test_bad_training_commands(elliptical_robust, fashion_mnist, tmp_path, change, message):
    words = {
        "recipe": "deit-micro",
        "--attention": "softmax",
        "--data": f"fashion-mnist:{fashion_mnist}",
        **change,
    }
    recipe = words.pop("recipe")
    code, _, err = elliptical_robust(
        "train", recipe, *(word for pair in words.items() for word in pair)
    )
    assert code == 2
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["fashion"]


def test_pairs_of_words_are_counted_and_stand_beside_models_of_their_vocabulary(
    elliptical_robust, tmp_path
):
    text = " = One = \n the law of the land is the law . \n the people of the land \n"
    (tmp_path / "wiki").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "wiki" / f"wiki.{split}.tokens").write_text(text * 3)
    code, out, err = elliptical_robust(
        "train", "kneser-ney", "--data", f"wikitext:{tmp_path / 'wiki'}", "--output", "counted"
    )
    assert (code, err) == (0, "")
    assert "kneser-ney-wikitext: perplexity" in out
    card = tmp_path / "counted" / "kneser-ney-wikitext.toml"
    code, out, err = elliptical_robust(
        "eval", "--model", card, "--data", f"wikitext:{tmp_path / 'wiki'}", "--output", "run"
    )
    assert (code, err) == (0, "")
    measured = read_results(tmp_path / "run").results.language.summaries[0]
    assert f"{measured.perplexity:.4f}"[:5] in card.read_text()
    assert "claimed-perplexity-differs" not in out
    empty = elliptical_robust("train", "kneser-ney", "--data", "wikitext:nowhere", "--output", "b")
    assert empty[0] == 2
    assert "nowhere" in empty[2]
    assert not (tmp_path / "b").exists()


def test_an_interrupted_training_says_what_is_kept(elliptical_robust, tmp_path, monkeypatch):
    def interrupted(job, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr("robustbench_elliptical.cli.training.run_language", interrupted)
    words = ("train", "lm-micro", "--attention", "softmax", "--data", "sotu", "--output", "a")
    code, _, err = elliptical_robust(*words)
    assert code == 130
    assert err == "Interrupted: nothing was saved yet; the same command continues\n"
    (tmp_path / "a" / "lm-micro-softmax.state").write_text("")
    assert "its last saved state is in" in elliptical_robust(*words)[2]

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language import compact_state
from robustbench_elliptical.training.language import (
    LanguageRecipe,
    LanguageTrainingJob,
    load_language_recipe,
    train_language,
)
from robustbench_elliptical.training.language.trainer import build_model
from robustbench_elliptical.training.language.windows import (
    epoch_starts,
    steps_per_epoch,
    windows,
)

VOCABULARY = 12


@pytest.fixture
def recipe() -> LanguageRecipe:
    shipped = load_language_recipe("lm-micro").model_dump()
    shipped["architecture"] |= {
        "layers": 2,
        "d_model": 8,
        "num_heads": 2,
        "d_head": 4,
        "d_inner": 16,
        "context_length": 8,
        "cutoffs": [4, 8],
        "dropout": 0.1,
    }
    shipped["optimisation"] |= {"epochs": 2, "batch_size": 4, "learning_rate": 0.01}
    return LanguageRecipe(**shipped)


@pytest.fixture
def text() -> np.ndarray:
    """A text whose next token is mostly the present one plus one."""
    generator = np.random.default_rng(0)
    steps = np.where(generator.random(333) < 0.9, 1, generator.integers(VOCABULARY, size=333))
    return steps.cumsum() % VOCABULARY


@pytest.fixture
def job(recipe, tmp_path):
    def make(variant="elliptical", **fields):
        values = {"seed": 0, "vocab_size": VOCABULARY, "output": tmp_path, "save_every": 3}
        return LanguageTrainingJob(recipe, variant, **{**values, **fields})

    return make


def assert_same_weights(one, other):
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


@pytest.mark.parametrize("epoch", range(5))
def test_an_epoch_covers_the_text_once(epoch):
    tokens = torch.arange(333)
    starts = epoch_starts(333, 8, seed=1, epoch=epoch)
    inputs, targets = windows(tokens, starts, 8)
    assert torch.equal(targets, inputs + 1)
    seen = inputs.flatten().sort().values
    assert torch.equal(seen, torch.arange(int(seen[0]), int(seen[0]) + len(seen)))
    assert len(starts) // 4 == steps_per_epoch(333, 8, 4) == 10
    assert not torch.equal(starts, epoch_starts(333, 8, seed=1, epoch=epoch + 1))
    assert not torch.equal(starts, epoch_starts(333, 8, seed=2, epoch=epoch))


def test_every_shift_fits_the_shortest_text():
    for length in range(1, 9):
        for tokens in range(2 * length, 3 * length):
            shifts = set()
            for epoch in range(60):
                starts = epoch_starts(tokens, length, 0, epoch)
                windows(torch.arange(tokens), starts, length)
                shifts.add(int(starts.min()))
            assert shifts == set(range(length))


@pytest.mark.parametrize("variant", ["softmax", "elliptical", "elliptical-released"])
def test_training_learns(variant, recipe, tmp_path, text):
    longer = recipe.optimisation.model_copy(update={"epochs": 12})
    recipe = recipe.model_copy(update={"optimisation": longer})
    model = train_language(LanguageTrainingJob(recipe, variant, 0, VOCABULARY, tmp_path), text)
    assert not model.training
    inputs, targets = windows(torch.as_tensor(text), torch.arange(0, 320, 8), 8)
    with torch.no_grad():
        loss = model.token_losses(inputs, targets).mean()
    assert loss < 0.6 * np.log(VOCABULARY)


def test_same_seed_same_weights_whatever_the_global_generator(job, text, tmp_path):
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = train_language(job(output=tmp_path), text)
    assert torch.equal(torch.random.get_rng_state(), before)
    other_folder = tmp_path / "again"
    other_folder.mkdir()
    torch.manual_seed(2)
    assert_same_weights(first, train_language(job(output=other_folder), torch.as_tensor(text)))
    weights = first.word_emb.weight
    assert not torch.equal(weights, train_language(job(seed=1), text).word_emb.weight)


@pytest.mark.parametrize("killed_at", [1, 3, 10, 14])
def test_a_killed_and_continued_run_equals_an_uninterrupted_one(killed_at, job, text, tmp_path):
    class Killed(Exception):
        pass

    def kill(done, total):
        assert total == 20
        if done == killed_at:
            raise Killed

    whole = train_language(job(), text)
    other_folder = tmp_path / "killed"
    other_folder.mkdir()
    broken = job(output=other_folder)
    with pytest.raises(Killed):
        train_language(broken, text, kill)
    steps = []
    continued = train_language(broken, text, lambda done, total: steps.append(done))
    assert steps[0] == killed_at // 3 * 3 + 1
    assert_same_weights(whole, continued)
    assert_same_weights(whole, train_language(broken, text, kill))


@pytest.mark.parametrize("change", ["recipe", "data", "vocabulary"])
def test_a_state_of_another_job_is_refused(change, job, recipe, text):
    train_language(job(), text)
    other = job()
    if change == "recipe":
        slower = recipe.optimisation.model_copy(update={"learning_rate": 0.02})
        changed = recipe.model_copy(update={"optimisation": slower})
        other = LanguageTrainingJob(changed, "elliptical", 0, VOCABULARY, other.output)
    elif change == "data":
        text = text[::-1].copy()
    else:
        other = job(vocab_size=VOCABULARY + 1)
    with pytest.raises(UsageError, match="was made with another"):
        train_language(other, text)


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (np.zeros(39, dtype=np.int64), "at least 40 tokens for 4 windows of 8, got 39"),
        (np.zeros(0, dtype=np.int64), "at least 40 tokens"),
        (np.full(99, VOCABULARY), r"must lie in 0\.\.11 .* got 12\.\.12"),
        (np.full(99, -1), r"got -1\.\.-1"),
        (np.zeros(99), "must be int64 of one dimension, got torch.float64"),
        (np.zeros((9, 9), dtype=np.int64), r"of shape \(9, 9\)"),
    ],
)
def test_bad_text_is_refused(tokens, problem, job):
    with pytest.raises(UsageError, match=problem):
        train_language(job(), tokens)


def test_divergence_is_said(job, recipe, text):
    mad = recipe.optimisation.model_copy(update={"learning_rate": 1e30, "gradient_clip": None})
    broken = recipe.model_copy(update={"optimisation": mad})
    diverging = LanguageTrainingJob(broken, "softmax", 0, VOCABULARY, job().output)
    with pytest.raises(UsageError, match=r"diverged after \d+ steps"):
        train_language(diverging, text)


def test_tokens_may_be_read_only(job, text):
    text.setflags(write=False)
    assert not train_language(job("softmax"), text).training


def test_names_follow_the_variant_and_the_seed(job):
    assert job("elliptical-released").name == "lm-micro-elliptical-released"
    assert job("softmax", seed=2).name == "lm-micro-softmax-seed2"
    assert job("softmax", seed=2).family == "lm-micro-softmax"


def test_an_unknown_variant_gets_suggestions(recipe):
    with pytest.raises(UsageError, match="did you mean 'elliptical'"):
        recipe.attention_choice("eliptical")


def test_the_vocabulary_must_be_larger_than_the_cutoffs(job):
    with pytest.raises(UsageError, match="architecture of recipe lm-micro: cutoffs must rise"):
        train_language(job(vocab_size=8), np.zeros(99, dtype=np.int64))


def test_the_shipped_recipe_keeps_the_size_limits(tmp_path):
    recipe = load_language_recipe("lm-micro")
    sizes = recipe.architecture
    assert sizes.layers <= 6
    assert sizes.d_model <= 128
    job = LanguageTrainingJob(recipe, "softmax", 0, 17_000, tmp_path)
    stored = compact_state(build_model(job)).values()
    assert sum(tensor.nbytes for tensor in stored) < 4.9e6
    assert set(recipe.attention) == {"softmax", "elliptical", "elliptical-released"}
    released = recipe.attention["elliptical-released"].settings
    assert released == {"scaling": "max", "metric_scope": "window", "scale": "none"}
    causal = recipe.attention["elliptical"].settings
    assert causal == {"scaling": "max", "metric_scope": "prefix", "scale": "sqrt"}

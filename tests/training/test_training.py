import shutil

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data import ImageData
from robustbench_elliptical.models import load_model
from robustbench_elliptical.training import TrainingJob, load_recipe, publish, train
from robustbench_elliptical.training.batches import augment, epoch_batches
from robustbench_elliptical.training.optimisation import make_optimizer, make_schedule
from robustbench_elliptical.training.recipe import Augmentation


class Stripes(ImageData):
    """Two classes that a small model can learn: bright left half, bright right half."""

    def __init__(self, count=64):
        labels = np.arange(count, dtype=np.int64) % 2
        ids = [f"stripes/{index}" for index in range(count)]
        super().__init__("stripes", labels, ids, 2, image_shape=(1, 8, 8))

    def _read(self, indices):
        noise = np.random.default_rng(0).integers(0, 90, (len(self), 1, 8, 8), dtype=np.uint8)
        for index in range(len(self)):
            half = slice(0, 4) if self.labels[index] == 0 else slice(4, 8)
            noise[index, :, :, half] += 150
        return noise[list(indices)]


@pytest.fixture
def recipe():
    shipped = load_recipe("deit-micro")
    sizes = {"image_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2}
    sizes["num_classes"] = 2
    return shipped.model_copy(
        update={
            "architecture": shipped.architecture.model_copy(update=sizes),
            "augmentation": Augmentation(flip=False, crop_padding=1),
            "optimisation": shipped.optimisation.model_copy(
                update={"epochs": 4, "batch_size": 16, "drop_path": 0.1}
            ),
        }
    )


def weights(model):
    return {key: value.clone() for key, value in model.network.state_dict().items()}


@pytest.mark.parametrize("mechanism", ["softmax", "elliptical"])
def test_an_interrupted_training_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path, recipe, mechanism
):
    whole = train(TrainingJob(recipe, mechanism, 3, tmp_path), Stripes())
    job = TrainingJob(recipe, mechanism, 3, tmp_path / "again")
    job.output.mkdir()

    def stop(done, total):
        assert total == 16
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(job, Stripes(), stop)
    assert job.state_path.exists()
    resumed = train(job, Stripes())
    for key, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[key]), key


def test_seeds_differ_and_global_generators_are_untouched(tmp_path, recipe):
    state = torch.get_rng_state()
    first = train(TrainingJob(recipe, "softmax", 0, tmp_path), Stripes())
    second = train(TrainingJob(recipe, "softmax", 1, tmp_path), Stripes())
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(weights(first)["head.weight"], weights(second)["head.weight"])


def test_what_is_published_loads_and_claims_what_was_measured(tmp_path, recipe):
    quick = {"epochs": 20, "learning_rate": 1e-2, "drop_path": 0.0}
    recipe = recipe.model_copy(
        update={
            "augmentation": Augmentation(),
            "optimisation": recipe.optimisation.model_copy(update=quick),
        }
    )
    job = TrainingJob(recipe, "elliptical", 0, tmp_path)
    model = train(job, Stripes())
    published = publish(job, model, Stripes(40), "elliptical-robust train ...")
    measured = published.card.measured[0]
    assert (measured.n, measured.correct) == (40, 40)
    loaded = load_model(str(published.card_path))
    assert loaded.description.claimed_accuracy("fashion-mnist") == 1.0
    assert loaded.description.attention == "elliptical"
    for key, value in weights(model).items():
        torch.testing.assert_close(weights(loaded)[key], value, rtol=1e-3, atol=1e-4)


def test_a_state_of_another_job_is_refused(tmp_path, recipe):
    job = TrainingJob(recipe, "softmax", 0, tmp_path)
    train(job, Stripes())
    other = TrainingJob(recipe, "softmax", 5, tmp_path)
    shutil.copy(job.state_path, other.state_path)
    with pytest.raises(UsageError, match="was made with another seed"):
        train(other, Stripes())
    other.state_path.write_bytes(b"broken")
    with pytest.raises(UsageError, match="is broken"):
        train(other, Stripes())


def test_too_few_images_for_a_batch(tmp_path, recipe):
    with pytest.raises(UsageError, match="batch_size must be at most the 8 training images"):
        train(TrainingJob(recipe, "softmax", 0, tmp_path), Stripes(8))


def test_augmentation_flips_and_shifts_and_loses_nothing_else():
    images = torch.zeros(200, 1, 5, 5)
    images[:, 0, 2, 1] = 1
    generator = np.random.default_rng(0)
    moved = augment(images, Augmentation(flip=True, crop_padding=1), generator)
    assert moved.shape == images.shape
    assert (moved.flatten(1).sum(dim=1) == 1).all()
    places = {tuple(place.tolist()) for place in moved[:, 0].nonzero()[:, 1:]}
    assert places == {(row, column) for row in (1, 2, 3) for column in range(5)}
    same = augment(images, Augmentation(), generator)
    assert torch.equal(same, images)


def test_an_epoch_is_a_shuffle_keyed_on_seed_and_epoch():
    images = torch.arange(10, dtype=torch.uint8).view(10, 1, 1, 1)
    labels = torch.arange(10)

    def epoch(*words):
        batches = list(epoch_batches(images, labels, 4, Augmentation(), *words))
        for inputs, targets in batches:
            assert torch.equal((inputs.flatten() * 255).round().long(), targets)
        return torch.cat([targets for _, targets in batches]).tolist()

    assert len(set(epoch(0, 0))) == 8
    assert epoch(0, 0) == epoch(0, 0)
    assert epoch(0, 0) != epoch(0, 1)
    assert epoch(0, 0) != epoch(1, 0)


def test_schedule_warms_up_to_the_peak_and_ends_at_zero(recipe, tmp_path):
    options = recipe.optimisation.model_copy(update={"epochs": 3, "warmup_epochs": 1.0})
    network = torch.nn.Linear(2, 2)
    optimizer = make_optimizer(network, options)
    schedule = make_schedule(optimizer, options, steps_per_epoch=10)
    rates = []
    for _ in range(30):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[0] == pytest.approx(options.learning_rate / 10)
    assert max(rates) == rates[9] == pytest.approx(options.learning_rate)
    assert rates[20] == pytest.approx(options.learning_rate / 2)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0, abs=1e-12)


def test_decay_spares_vectors_class_token_and_positions():
    network = torch.nn.ParameterDict(
        {
            "matrix": torch.nn.Parameter(torch.ones(2, 2)),
            "bias": torch.nn.Parameter(torch.ones(2)),
            "cls_token": torch.nn.Parameter(torch.ones(1, 1, 2)),
        }
    )
    groups = make_optimizer(network, load_recipe("deit-micro").optimisation).param_groups
    assert [len(group["params"]) for group in groups] == [1, 2]
    assert [group["weight_decay"] for group in groups] == [0.05, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 'x'", "field required"),
        ("name = ", "is not valid TOML"),
    ],
)
def test_bad_recipes(tmp_path, text, message):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_recipe(str(path))


def test_unknown_recipes_and_mechanisms():
    with pytest.raises(UsageError, match="did you mean 'deit-micro'"):
        load_recipe("deit-mikro")
    with pytest.raises(UsageError, match="cannot read recipe"):
        load_recipe("nowhere.toml")
    with pytest.raises(UsageError, match="did you mean 'elliptical'"):
        load_recipe("deit-micro").attention_choice("eliptical")


@pytest.mark.parametrize("variant", sorted(load_recipe("deit-micro").attention))
def test_every_variant_is_published_with_all_its_tensors(tmp_path, recipe, variant):
    quick = recipe.optimisation.model_copy(update={"epochs": 1, "warmup_epochs": 0})
    recipe = recipe.model_copy(update={"optimisation": quick})
    job = TrainingJob(recipe, variant, 0, tmp_path)
    model = train(job, Stripes(16))
    loaded = load_model(str(publish(job, model, Stripes(16), "...").card_path))
    trained = weights(model)
    assert weights(loaded).keys() == trained.keys()
    for key, value in weights(loaded).items():
        torch.testing.assert_close(value, trained[key], rtol=1e-3, atol=1e-4)

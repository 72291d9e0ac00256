"""What is measured inside models, and that watching changes nothing."""

import numpy as np
import pytest
import torch
from scipy import stats

from robustbench_elliptical.data import ImageBatch
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.evaluation.images.internals import Witness
from robustbench_elliptical.evaluation.images.internals.inside import look
from robustbench_elliptical.evaluation.images.internals.measures import (
    attention_iou,
    class_attention,
    token_similarity,
)
from robustbench_elliptical.evaluation.images.internals.summaries import estimate
from robustbench_elliptical.evaluation.images.records import Unit
from robustbench_elliptical.models import ImageClassifier, build_network
from robustbench_elliptical.models.architecture import (
    AttentionChoice,
    VisionTransformerArchitecture,
)
from robustbench_elliptical.results import read_results, write_results

SIZES = VisionTransformerArchitecture(
    image_size=8, patch_size=4, channels=1, embed_dim=12, depth=3, num_heads=2, num_classes=3
)


def classifier(mechanism="elliptical", name="tiny", **settings):
    if mechanism == "elliptical":
        settings = {"scaling": "max"} | settings
    torch.manual_seed(1)
    choice = AttentionChoice(mechanism=mechanism, settings=settings)
    return ImageClassifier(
        build_network(SIZES, choice),
        input_shape=(1, 8, 8),
        num_classes=3,
        mean=[0.5],
        std=[0.5],
        name=name,
    ).eval()


@pytest.fixture
def images(tmp_path):
    """A data set that the tiny model classifies right, but for two images."""
    generator = np.random.default_rng(0)
    pixels = generator.uniform(0.2, 0.8, (12, 8, 8)).astype(np.float32)
    with torch.no_grad():
        labels = classifier()(torch.from_numpy(pixels)[:, None]).argmax(dim=1).numpy()
    labels[:2] = (labels[:2] + 1) % 3
    np.savez(tmp_path / "images.npz", images=pixels[:, None], labels=labels.astype(np.int64))
    return f"npz:{tmp_path / 'images.npz'}"


def run(models, data, **settings):
    base = {"attacks": ("pgd:steps=3",), "epsilons": ("0.02", "0.2"), "limit": None}
    chosen = EvaluationSettings(data=(data,), **(base | settings))
    return evaluate(chosen, models=models)


# --- The measures


def test_token_similarity_of_known_tokens():
    equal = torch.ones(1, 5, 3)
    assert token_similarity(equal).item() == pytest.approx(1)
    assert token_similarity(torch.eye(4)[None] * 7).item() == pytest.approx(0)
    opposite = torch.tensor([[[1.0, 0.0], [-2.0, 0.0]]])
    assert token_similarity(opposite).item() == pytest.approx(-1)


def test_token_similarity_is_the_mean_over_pairs():
    tokens = torch.randn(3, 6, 5, generator=torch.Generator().manual_seed(0))
    cosines = torch.nn.functional.cosine_similarity(tokens[:, :, None], tokens[:, None], dim=-1)
    away = ~torch.eye(6, dtype=torch.bool)
    torch.testing.assert_close(
        token_similarity(tokens), cosines[:, away].mean(dim=1).double(), rtol=1e-5, atol=1e-6
    )


def test_attention_iou_of_known_maps():
    maps = torch.rand(4, 9, generator=torch.Generator().manual_seed(0))
    others = torch.rand(4, 9, generator=torch.Generator().manual_seed(1))
    ones = torch.ones(4, dtype=torch.float64)
    torch.testing.assert_close(attention_iou(maps, 3 * maps), ones)
    score = attention_iou(maps, others)
    torch.testing.assert_close(score, attention_iou(others, 5 * maps))
    assert ((score > 0) & (score < 1)).all()
    apart = torch.tensor([[1.0, 0, 0]]), torch.tensor([[0, 1.0, 1.0]])
    assert attention_iou(*apart).item() == 0
    # a = (1, 0), b = (1/2, 1/2): sum(a b) = 1/2, ((a + b) / 2)^2 = 9/16 + 1/16.
    half = torch.tensor([[1.0, 0]]), torch.tensor([[3.0, 3.0]])
    assert attention_iou(*half).item() == pytest.approx(0.8)
    assert attention_iou(torch.zeros(1, 2), torch.zeros(1, 2)).item() == 1
    assert attention_iou(torch.zeros(1, 2), torch.ones(1, 2)).item() == 0


def test_no_map_of_what_is_none():
    weights = torch.rand(2, 3, 5, 5)
    found = class_attention(weights, 1, 4)
    expected = weights[:, :, 0, 1:].mean(dim=1)
    torch.testing.assert_close(found.float(), expected / expected.sum(dim=1, keepdim=True))
    assert class_attention(weights[..., :4], 1, 4) is None
    assert class_attention(weights - 0.9, 1, 4) is None
    assert class_attention(weights, 0, 5) is None


def test_estimate_is_the_t_interval():
    values = torch.tensor([0.1, 0.4, 0.3, 0.9], dtype=torch.float64)
    found = estimate(values)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values.numpy()))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean().item(), low, high))
    one = estimate(values[:1])
    assert (one.low, one.mean, one.high) == pytest.approx((0.1, 0.1, 0.1))


def test_a_look_sees_what_trace_does():
    model, pixels = classifier(), torch.rand(3, 1, 8, 8)
    inside = look(model, pixels, torch.zeros(3, dtype=torch.int64))
    _, blocks = model.trace(pixels)
    torch.testing.assert_close(inside.similarity[:, 3], token_similarity(blocks[2].tokens))
    assert sorted(inside.metrics) == [1, 2]
    torch.testing.assert_close(inside.metrics[2].float(), blocks[2].state["metric"])
    assert [tuple(each.shape) for each in inside.maps] == [(3, 2, 2)] * 3
    plain = look(classifier("softmax"), pixels, torch.zeros(3, dtype=torch.int64))
    assert plain.metrics == {}
    assert look(classifier("linformer", slots=2), pixels, torch.zeros(3)).maps == ()


# --- In an evaluation


def test_watching_changes_no_outcome_and_no_cost(images):
    with_, without = (run([classifier()], images, examples=count) for count in (6, 0))
    assert without.results.images.internals == without.results.images.pictures == []
    columns = ["sample_id", "outcome", "prediction", "distance", "forwards", "backwards"]
    assert with_.samples[columns].equals(without.samples[columns])
    summaries = [each.results.images.summaries for each in (with_, without)]
    assert [each.forwards for each in summaries[0]] == [each.forwards for each in summaries[1]]


def test_the_records_are_those_of_the_points(images):
    evaluation = run([classifier()], images, examples=12)
    section = evaluation.results.images
    units = [(each.attack, each.epsilon) for each in section.internals]
    assert units == [
        ("clean", 0.0),
        *((a, e) for a in ("noise", "pgd(steps=3)") for e in (0.02, 0.2)),
    ]
    assert {each.samples for each in section.internals} == {10}
    clean = section.internals[0]
    assert clean.attention_iou == []
    assert [each.block for each in clean.metric] == [1, 2]
    assert all(each.change == [] for each in clean.metric)
    for picture in section.pictures:
        before, after = (
            evaluation.pictures[f"{picture.key}/{side}"].astype(float)
            for side in ("clean", "attacked")
        )
        assert np.abs(after - before).max() <= picture.epsilon + 1e-3
        row = evaluation.samples[
            (evaluation.samples["attack"] == picture.attack)
            & (evaluation.samples["epsilon"] == picture.epsilon)
            & (evaluation.samples["sample_id"] == picture.sample_id)
        ].iloc[0]
        assert (row["prediction"], row["label"]) == (picture.prediction, picture.label)
        assert picture.clean_prediction == picture.label
        model = classifier()
        with torch.no_grad():
            logits = model(torch.from_numpy(after).float()[None])
        assert int(logits.argmax()) == picture.prediction


def test_a_sample_fooled_at_a_small_epsilon_keeps_its_point(images):
    evaluation = run([classifier()], images, examples=12, epsilons=("0.15", "0.3"))
    samples, section = evaluation.samples, evaluation.results.images
    early = samples[(samples["epsilon"] == 0.15) & (samples["attack"] == "pgd(steps=3)")]
    fooled = set(early.loc[early["outcome"] == "fooled", "sample_id"])
    kept = {}
    for picture in section.pictures:
        if picture.attack == "pgd(steps=3)":
            kept.setdefault(picture.sample_id, []).append(
                evaluation.pictures[f"{picture.key}/attacked"]
            )
    assert fooled & set(kept)
    for sample_id, (first, second) in kept.items():
        assert np.array_equal(first, second) == (sample_id in fooled)


def test_batches_do_not_matter(images):
    whole, parts = (run([classifier()], images, examples=7, batch_size=size) for size in (12, 3))
    for one, other in zip(
        whole.results.images.internals, parts.results.images.internals, strict=True
    ):
        assert one.samples == other.samples
        for name in ("token_similarity", "attention_iou"):
            pairs = zip(getattr(one, name), getattr(other, name), strict=True)
            for a, b in pairs:
                assert (a.mean, a.low) == pytest.approx((b.mean, b.low), abs=1e-4)
        for a, b in zip(one.metric, other.metric, strict=True):
            np.testing.assert_allclose(a.mean, b.mean, atol=1e-4)


def test_controls_do_not_move_and_strangers_give_pictures_only(images):
    identity = classifier(metric="identity", name="identity")
    stranger = ImageClassifier(
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3)),
        input_shape=(1, 8, 8),
        num_classes=3,
        mean=[0.0],
        std=[1.0],
        name="stranger",
    )
    section = run([identity, stranger], images, examples=12).results.images
    inside = {each.model for each in section.internals}
    assert inside == {"identity"}
    changes = [
        change.mean
        for record in section.internals
        for metric in record.metric
        for change in metric.change
    ]
    assert changes
    assert set(changes) == {0.0}
    assert "stranger" in {each.model for each in section.pictures}
    assert len({each.key for each in section.pictures}) == len(section.pictures)


def test_a_unit_that_not_all_examples_went_through_is_left_out(images, monkeypatch):
    import robustbench_elliptical.evaluation.images.task as task

    calls = []
    original = task.evaluate_batch

    def stopping(*args, **kwargs):
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        original(*args, **kwargs)

    monkeypatch.setattr(task, "evaluate_batch", stopping)
    evaluation = run([classifier()], images, examples=12, batch_size=6)
    assert not evaluation.results.complete
    assert evaluation.results.images.internals == evaluation.results.images.pictures == []
    assert dict(evaluation.pictures) == {}


def test_results_with_pictures_are_read_back(images, tmp_path):
    evaluation = run([classifier()], images, examples=3)
    write_results(tmp_path / "run", evaluation, lambda _: "")
    back = read_results(tmp_path / "run")
    assert back.results == evaluation.results
    assert set(back.pictures) == set(evaluation.pictures)
    for name, array in evaluation.pictures.items():
        np.testing.assert_array_equal(back.pictures[name], array)


def test_a_sample_that_is_wrong_when_clean_is_left_out():
    model = classifier()
    witness = Witness(model, ["a", "b"], "0")
    batch = ImageBatch(torch.rand(2, 1, 8, 8), torch.tensor([0, 1]), ("a", "b"))
    right = np.array([True, False])
    for unit in (Unit("tiny", "clean", None, 0.0), Unit("tiny", "pgd", "linf", 0.1)):
        witness.see(unit, batch, batch.images, right, np.array([0, 2]))
    records = witness.internals()
    assert [each.samples for each in records] == [1, 1]
    assert [each.mean for each in records[1].attention_iou] == pytest.approx([1.0] * 3)
    assert [each.sample_id for each in witness.pictures().records] == ["a"]


def test_a_sample_that_an_attack_failed_on_is_left_out_of_it():
    model = classifier()
    witness = Witness(model, ["a", "b", "c"], "0")
    pixels = torch.rand(3, 1, 8, 8)
    batch = ImageBatch(pixels, torch.tensor([0, 1, 2]), ("a", "b", "c"))
    clean, failing = Unit("tiny", "clean", None, 0.0), Unit("tiny", "pgd", "linf", 0.1)
    points = pixels.clone()
    points[0] = torch.nan
    witness.see(clean, batch, pixels, np.ones(3, bool), np.array([0, 1, 2]))
    witness.see(failing, batch, points, np.array([False, True, True]), np.array([-1, 1, 2]))
    before, after = witness.internals()
    assert (before.samples, after.samples) == (3, 2)
    # The others did not move, so each is compared with itself.
    assert [each.mean for each in after.attention_iou] == pytest.approx([1.0] * 3)
    assert {change.mean for each in after.metric for change in each.change} == {0.0}
    assert [each.sample_id for each in witness.pictures().records] == ["b", "c"]
    broken = Unit("tiny", "other", "linf", 0.1)
    witness.see(broken, batch, points, np.ones(3, bool), np.array([0, 1, 2]))
    assert "other" not in {each.attack for each in witness.internals()}

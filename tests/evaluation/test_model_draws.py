"""Models that draw at random: what an attack knows, what it pays, and what it is judged by."""

import numpy as np
import pytest
import torch

from robustbench_elliptical.core.randomness import sample_key
from robustbench_elliptical.evaluation import EvaluationSettings, evaluate
from robustbench_elliptical.models import (
    AttentionChoice,
    ImageClassifier,
    VisionTransformerArchitecture,
    build_network,
)

ARCHITECTURE = VisionTransformerArchitecture(
    image_size=4, patch_size=2, channels=1, embed_dim=8, depth=2, num_heads=2, num_classes=2
)
STEPS = 3


@pytest.fixture
def classifier():
    def build(metric):
        settings = {"scaling": "max", "metric": metric}
        with torch.random.fork_rng():
            torch.manual_seed(2)
            choice = AttentionChoice(mechanism="elliptical", settings=settings)
            network = build_network(ARCHITECTURE, choice)
            for parameter in network.parameters():
                torch.nn.init.normal_(parameter, std=0.5)
        return ImageClassifier(
            network, input_shape=(1, 4, 4), num_classes=2, mean=[0.5], std=[0.2], name=metric
        )

    return build


@pytest.fixture
def rows(tmp_path, classifier):
    generator = np.random.default_rng(0)
    images = generator.uniform(0, 1, (24, 1, 4, 4)).astype(np.float32)
    path = tmp_path / "toy.npz"

    def run(model, attack):
        with torch.no_grad():
            labels = classifier("estimated")(torch.from_numpy(images)).argmax(1)
        np.savez(path, images=images, labels=labels.numpy())
        settings = EvaluationSettings(
            data=f"npz:{path}", attacks=(attack,), epsilons=("0.02",), limit=None, examples=0
        )
        return evaluate(settings, models=[model])[1]

    return run


def of(rows, attack):
    return rows[rows.attack == attack].set_index("sample_id")


@pytest.mark.parametrize("draws", [2, 4])
def test_every_draw_is_paid_for(rows, classifier, draws):
    found = of(rows(classifier("random"), f"pgd:steps={STEPS},draws={draws}"),
               f"pgd(steps={STEPS},draws={draws})")  # fmt: skip
    attacked = found[found.outcome != "skipped"]
    assert (attacked.forwards % draws == 0).all()
    assert (attacked.forwards <= draws * (STEPS + 1)).all()
    assert (attacked.forwards == draws * (STEPS + 1)).any()
    assert (attacked.backwards % draws == 0).all()


def test_a_model_that_draws_nothing_is_attacked_once(rows, classifier):
    model = classifier("estimated")
    one = of(rows(model, f"pgd:steps={STEPS}"), f"pgd(steps={STEPS})")
    many = of(rows(model, f"pgd:steps={STEPS},draws=9"), f"pgd(steps={STEPS},draws=9)")
    columns = ["outcome", "prediction", "distance", "forwards", "backwards"]
    assert one[columns].equals(many[columns])
    assert set(one.outcome) == {"robust", "fooled"}


@pytest.mark.parametrize(("draws", "known"), [(1, True), (3, False)])
def test_the_judged_draw_is_known_to_one_draw_alone(rows, classifier, draws, known):
    """Gradients are asked for under the draw of the sample's own key, or under others only."""
    model = classifier("random")
    asked, judged = set(), set()

    def watch(module, inputs):
        (judged if not inputs[0].requires_grad else asked).update(inputs[1].tolist())

    handle = model.register_forward_pre_hook(watch)
    found = rows(model, f"pgd:steps={STEPS},draws={draws}")
    handle.remove()
    own = {sample_key(each) for each in found.sample_id}
    others = {
        sample_key(f"{each}/draw/{draw}")
        for each in found.sample_id
        for draw in range(1, draws + 1)
    }
    assert judged >= own
    assert asked
    assert asked <= (own if known else others)

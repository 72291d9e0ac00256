"""What a mechanism's flags mean for the numbers is said in every run."""

import pytest

from robustbench_elliptical.evaluation.capabilities import capability_findings
from robustbench_elliptical.models import load_model
from robustbench_elliptical.models.description import ModelDescription


def described(attention, **settings):
    return ModelDescription(
        name="toy",
        source="python",
        attention=attention,
        attention_settings=settings,
        mean=(0.0,),
        std=(1.0,),
        input_shape=(1, 2, 2),
        num_classes=2,
        parameters=0,
    )


@pytest.mark.parametrize(
    ("attention", "settings", "expected"),
    [
        (None, {}, []),
        ("softmax", {}, []),
        ("mom", {}, []),
        ("mom", {"draw": "per-sample"}, ["draw-is-frozen"]),
        ("elliptical", {"scaling": "max", "metric": "random"}, ["draw-is-frozen"]),
        ("nystromformer", {"inverse_start": "released-batch-maximum"}, ["batch-coupled"]),
        ("spkde", {"gram_average": "released-batch-mean"}, ["batch-coupled"]),
        ("rkde", {"average": "released-batch-mean"}, []),
        ("rkde", {"average": "released-batch-mean", "iterations": 2}, ["batch-coupled"]),
        (
            "mom",
            {"draw": "per-sample", "scope": "released-batch"},
            ["batch-coupled", "draw-is-frozen"],
        ),
    ],
)
def test_flags_become_findings(attention, settings, expected):
    found = list(capability_findings([described(attention, **settings)], batch_size=7))
    assert [each.id for each in found] == expected
    for each in found:
        assert each.model == "toy"
        assert attention in each.evidence
        assert each.severity == ("warning" if each.id == "batch-coupled" else "notice")
        assert ("7" in each.evidence) == (each.id == "batch-coupled")


def test_every_model_is_looked_at():
    models = [described("mom", draw="per-sample", seed=seed) for seed in range(3)]
    assert len(list(capability_findings([*models, described("kde")], batch_size=1))) == 3


def test_a_shipped_model_with_settings_of_its_card():
    control = load_model("deit-micro-elliptical", attention={"metric": "random"})
    (found,) = capability_findings([control.description], batch_size=1)
    assert (found.id, found.model) == ("draw-is-frozen", "deit-micro-elliptical,metric=random")

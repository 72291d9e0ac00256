"""Bad input raises `UsageError` whose sentence names the way out."""

import math

import pytest
import torch

from robustbench_elliptical.attacks import ATTACKS, fgsm, pgd, spsa
from robustbench_elliptical.core.errors import UsageError

PIXELS = torch.full((2, 1, 2, 2), 0.5)
LABELS = torch.tensor([0, 1])


def model(images):
    return images.flatten(1)[:, :3]


def with_pixel(value):
    pixels = PIXELS.clone()
    pixels[0, 0, 0, 0] = value
    return pixels


@pytest.mark.parametrize("name", list(ATTACKS))
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"epsilon": 8},
            r"epsilon must be between 0 and 1 in \[0, 1\] pixels, got 8: did you mean 8/255\?",
        ),
        ({"epsilon": 300.0}, r"epsilon must be between 0 and 1 in \[0, 1\] pixels, got 300$"),
        ({"epsilon": -0.1}, r"epsilon must be 0 or more, got -0.1"),
        ({"epsilon": math.nan}, r"epsilon must be a number such as 8/255 or 0.031, got nan"),
        ({"inputs": with_pixel(math.nan)}, r"images must be finite"),
        ({"inputs": with_pixel(math.inf)}, r"images must be finite"),
        (
            {"inputs": with_pixel(-1.5)},
            r"images must lie in \[0, 1\], got -1.5 to 0.5: put the normalisation inside the model",
        ),
        ({"inputs": with_pixel(255.0)}, r"images must lie in \[0, 1\], got 0.5 to 255"),
        (
            {"inputs": PIXELS.to(torch.uint8)},
            r"must be floating point .* torch.uint8: divide by 255",
        ),
        ({"inputs": PIXELS[:, 0, 0, 0]}, r"images must have shape \(batch, \.\.\.\), got \(2,\)"),
        ({"labels": LABELS.float()}, r"labels must be class numbers \(int64\), got torch.float32"),
        ({"labels": LABELS.bool()}, r"labels must be class numbers \(int64\), got torch.bool"),
        ({"labels": LABELS[:1]}, r"labels must have shape \(2,\), got \(1,\)"),
        ({"labels": LABELS[:, None]}, r"labels must have shape \(2,\), got \(2, 1\)"),
        ({"labels": LABELS - 1}, r"labels must be 0 or more, got -1"),
        ({"sample_ids": ["a"]}, r"sample_ids must hold 2 ids, one an image, got 1"),
        ({"seed": -1}, r"seed must be a whole number of 0 or more, got -1"),
        ({"seed": 0.5}, r"seed must be a whole number of 0 or more, got 0.5"),
        ({"norm": "l3"}, r"norm: input should be 'linf'.*, got 'l3'"),
    ],
)
def test_shared_arguments(name, changes, message):
    arguments = {"inputs": PIXELS, "labels": LABELS, "epsilon": 0.1} | changes
    inputs, labels = arguments.pop("inputs"), arguments.pop("labels")
    with pytest.raises(UsageError, match=message):
        ATTACKS[name].function(model, inputs, labels, **arguments)


@pytest.mark.parametrize("name", ["fgsm", "pgd", "spsa"])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda images: images.flatten(1)[:, :1], "labels must lie in 0..0 .* got 1"),
        (lambda images: images, r"model must return logits of shape \(2, classes\), got \(2, 1"),
        (lambda images: images.flatten(1)[:1], r"shape \(2, classes\), got \(1, 4\)"),
    ],
)
def test_answers_of_the_model(name, answer, message):
    with pytest.raises(UsageError, match=message):
        ATTACKS[name].function(
            answer, PIXELS, LABELS, epsilon=0.1, **({"samples": 1} if name == "spsa" else {})
        )


@pytest.mark.parametrize(
    ("attack", "settings", "message"),
    [
        (pgd, {"steps": 0}, "attack pgd: steps: input should be greater than or equal to 1, got 0"),
        (pgd, {"restarts": 0}, "attack pgd: restarts: .* greater than or equal to 1, got 0"),
        (pgd, {"step_size": 0.0}, r"attack pgd: step_size: .* greater than 0, got 0\.0"),
        (pgd, {"step_size": math.inf}, "attack pgd: step_size: .*finite number, got inf"),
        (pgd, {"loss": "hinge"}, "loss: input should be 'cross-entropy', 'margin' or 'dlr'"),
        (fgsm, {"norm": "l1"}, "norm: input should be 'linf' or 'l2', got 'l1'"),
        (spsa, {"norm": "l2"}, "attack spsa: norm: input should be 'linf', got 'l2'"),
        (spsa, {"samples": 0}, "samples: input should be greater than or equal to 1"),
        (spsa, {"max_rows": 1}, "max_rows: input should be greater than or equal to 2"),
        (spsa, {"delta": 0}, "delta: input should be greater than 0"),
        (spsa, {"learning_rate": -1}, "learning_rate: input should be greater than 0"),
    ],
)
def test_settings_of_direct_calls(attack, settings, message):
    with pytest.raises(UsageError, match=message):
        attack(model, PIXELS, LABELS, epsilon=0.1, **settings)


def test_l2_epsilon_is_bounded_by_the_diameter_of_the_box():
    message = "between 0 and 2 for norm l2, the diameter of the unit box, got 128: did you mean 128"
    with pytest.raises(UsageError, match=message):
        pgd(model, PIXELS, LABELS, epsilon=128, norm="l2")
    assert pgd(model, PIXELS, LABELS, epsilon=2.0, norm="l2").shape == PIXELS.shape


@pytest.mark.parametrize(
    ("classes", "targeted", "message"),
    [
        (2, False, "loss dlr needs at least 3 classes, got 2: use loss=margin"),
        (3, True, "targeted loss dlr needs at least 4 classes, got 3: use loss=margin"),
    ],
)
@pytest.mark.parametrize("attack", [fgsm, pgd])
def test_dlr_needs_classes(attack, classes, targeted, message):
    def few(images):
        return images.flatten(1)[:, :classes]

    with pytest.raises(UsageError, match=message):
        attack(few, PIXELS, LABELS, epsilon=0.1, loss="dlr", targeted=targeted)


def test_one_class_cannot_be_attacked():
    with pytest.raises(UsageError, match=r"loss cross-entropy needs at least 2 classes, got 1$"):
        fgsm(lambda images: images.flatten(1)[:, :1], PIXELS, LABELS * 0, epsilon=0.1)


def test_unsigned_labels_and_text_are_understood():
    settings = {"steps": "3", "step_size": "2/255"}
    result = pgd(model, PIXELS, LABELS.to(torch.uint8), epsilon="8/255", **settings)
    assert torch.equal(
        result, pgd(model, PIXELS, LABELS, epsilon=8 / 255, steps=3, step_size=2 / 255)
    )


def test_unknown_keywords_are_pythons_affair():
    with pytest.raises(TypeError, match="stepz"):
        pgd(model, PIXELS, LABELS, epsilon=0.1, stepz=3)

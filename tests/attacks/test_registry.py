import dataclasses
import inspect
import json

import pydantic
import pytest
import torch

from robustbench_elliptical import attacks
from robustbench_elliptical.attacks import ATTACKS, AttackChoice, parse_attack
from robustbench_elliptical.core.errors import UnknownNameError, UsageError


def test_facade():
    assert attacks.__all__ == sorted(attacks.__all__)
    assert all(getattr(attacks, name) for name in attacks.__all__)


def test_entries():
    assert {name: (ATTACKS[name].knowledge, ATTACKS[name].norms) for name in ATTACKS} == {
        "noise": ("none", ("linf", "l2")),
        "fgsm": ("white-box", ("linf", "l2")),
        "pgd": ("white-box", ("linf", "l2")),
        "spsa": ("black-box", ("linf",)),
    }
    for name in ATTACKS:
        entry = ATTACKS[name]
        assert entry.name == name
        assert entry.function is getattr(attacks, name)
        assert ("arXiv" in entry.paper) == (name != "noise")


@pytest.mark.parametrize("name", list(ATTACKS))
def test_settings_are_the_signature(name):
    parameters = inspect.signature(ATTACKS[name].function).parameters
    keywords = {
        key: each.default
        for key, each in parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert list(parameters)[:3] == ["model", "inputs", "labels"]
    assert keywords.pop("epsilon") is inspect.Parameter.empty
    assert keywords.pop("seed") == 0
    assert keywords.pop("sample_ids") is None
    assert parse_attack(name).resolved() == keywords
    json.dumps(ATTACKS[name].settings.model_json_schema())


@pytest.mark.parametrize("name", list(ATTACKS))
def test_every_parameter_is_documented(name):
    function = ATTACKS[name].function
    described = inspect.getdoc(function).partition("Parameters\n")[2].partition("Returns\n")[0]
    words = {word.strip(",") for word in described.split()}
    assert set(inspect.signature(function).parameters) <= words


@pytest.mark.parametrize(
    ("text", "label", "epsilon"),
    [
        ("pgd", "pgd", None),
        ("pgd:steps=20", "pgd", None),
        ("pgd:restarts=5,steps=40", "pgd(steps=40,restarts=5)", None),
        (" pgd : steps = 40 , epsilon = 8/255 ", "pgd(steps=40)", 8 / 255),
        ("pgd:step_size=2/255", "pgd(step_size=2/255)", None),
        (
            "pgd:step-size=0.0123,random-start=false",
            "pgd(step_size=0.0123,random_start=false)",
            None,
        ),
        ("pgd:norm=l2,epsilon=3", "pgd(norm=l2)", 3.0),
        ("pgd:loss=cross-entropy,targeted=no", "pgd", None),
        ("fgsm:targeted=true,epsilon=0", "fgsm(targeted=true)", 0.0),
        ("noise:kind=uniform", "noise(kind=uniform)", None),
        ("spsa:max_rows=64,samples=8", "spsa(samples=8,max_rows=64)", None),
    ],
)
def test_good_specs(text, label, epsilon):
    choice = parse_attack(text)
    assert choice.label == label
    assert choice.epsilon == epsilon
    again = AttackChoice.of(choice.name, json.loads(json.dumps(choice.resolved())))
    assert again == dataclasses.replace(choice, epsilon=None)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", UsageError, "attack must be NAME or NAME:key=value"),
        ("pdg", UnknownNameError, "unknown attack 'pdg': did you mean 'pgd'"),
        ("autoattack", UnknownNameError, "unknown attack 'autoattack': known: fgsm, noise, pgd"),
        (
            "pgd:step=3",
            UnknownNameError,
            "unknown setting of attack pgd 'step': did you mean 'steps'",
        ),
        ("pgd:seed=3", UnknownNameError, "unknown setting of attack pgd 'seed'"),
        ("fgsm:steps=3", UnknownNameError, "unknown setting of attack fgsm 'steps'"),
        ("pgd:", UsageError, "must be key=value"),
        ("pgd:steps", UsageError, "must be key=value"),
        ("pgd:steps=3,steps=4", UsageError, "given twice"),
        (
            "pgd:steps=0",
            UsageError,
            "attack pgd: steps: input should be greater than or equal to 1",
        ),
        ("pgd:steps=2.5", UsageError, "attack pgd: steps: .*integer.*, got '2.5'"),
        (
            "pgd:step_size=x",
            UsageError,
            "step_size: must be a number such as 2/255 or 0.008, got 'x'",
        ),
        ("pgd:step_size=1/0", UsageError, "step_size: must be a number such as 2/255"),
        ("pgd:step_size=-2/255", UsageError, "step_size: input should be greater than 0"),
        ("pgd:random_start=maybe", UsageError, "random_start: input should be a valid boolean"),
        ("pgd:norm=l3", UsageError, "norm: input should be 'linf' or 'l2', got 'l3'"),
        ("spsa:norm=l2", UsageError, "attack spsa: norm: input should be 'linf', got 'l2'"),
        ("pgd:epsilon=8", UsageError, "epsilon must be between 0 and 1 .* did you mean 8/255"),
        ("pgd:epsilon=-8/255", UsageError, "epsilon must be 0 or more"),
        ("pgd:epsilon=abc", UsageError, "epsilon must be a number"),
        ("pgd:norm=l2,epsilon=inf", UsageError, "epsilon must be a number"),
    ],
)
def test_bad_specs(text, error, message):
    with pytest.raises(error, match=message):
        parse_attack(text)


def test_choice_says_what_evaluation_needs():
    choice = parse_attack("pgd:norm=l2,targeted=true")
    assert (choice.norm, choice.knowledge, choice.targeted) == ("l2", "white-box", True)
    noise = parse_attack("noise")
    assert (noise.norm, noise.knowledge, noise.targeted) == ("linf", "none", False)


def test_check_epsilon_knows_the_norm():
    assert parse_attack("pgd").check_epsilon("8/255") == 8 / 255
    assert parse_attack("pgd:norm=l2").check_epsilon(8) == 8
    with pytest.raises(UsageError, match="did you mean 8/255"):
        parse_attack("pgd").check_epsilon(8)


def test_choices_are_frozen_values():
    choice = parse_attack("pgd:steps=3")
    assert choice == parse_attack("pgd:steps=3")
    with pytest.raises(dataclasses.FrozenInstanceError):
        choice.name = "fgsm"
    with pytest.raises(pydantic.ValidationError):
        choice.settings.steps = 4


def test_run_hands_everything_on(mlp, images):
    labels = mlp(images).argmax(1)
    ids = list("abcdef")
    keywords = {"steps": 3, "norm": "l2", "restarts": 2, "loss": "margin"}
    direct = attacks.pgd(mlp, images, labels, epsilon=0.1, seed=4, sample_ids=ids, **keywords)
    choice = AttackChoice.of("pgd", keywords)
    assert torch.equal(choice.run(mlp, images, labels, epsilon=0.1, seed=4, sample_ids=ids), direct)


def test_run_takes_the_given_epsilon_and_else_its_own(mlp, images):
    labels = mlp(images).argmax(1)
    choice = parse_attack("fgsm:epsilon=0.1")
    own = choice.run(mlp, images, labels)
    assert torch.equal(own, attacks.fgsm(mlp, images, labels, epsilon=0.1))
    given = choice.run(mlp, images, labels, epsilon=0.2)
    assert torch.equal(given, attacks.fgsm(mlp, images, labels, epsilon=0.2))
    with pytest.raises(UsageError, match="attack fgsm needs an epsilon"):
        parse_attack("fgsm").run(mlp, images, labels)

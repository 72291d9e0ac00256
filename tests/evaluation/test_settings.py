import pytest
from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.evaluation import EvaluationSettings, load_suite
from robustbench_elliptical.evaluation.images.plan import plan_attacks
from robustbench_elliptical.evaluation.text.plan import plan_swaps
from robustbench_elliptical.models import parse_model


def plan(*attacks, epsilons=("4/255", "8/255")):
    chosen = EvaluationSettings(attacks=attacks).chosen_attacks("image-classification")
    return {
        each.choice.label: [round(epsilon * 255, 6) for epsilon in each.epsilons]
        for each in plan_attacks(chosen, epsilons)
    }


def test_the_noise_control_stands_beside_every_norm_at_the_same_epsilons():
    assert plan("pgd") == {"noise": [4, 8], "pgd": [4, 8]}
    assert plan("pgd", "noise") == {"pgd": [4, 8], "noise": [4, 8]}
    assert plan("pgd:norm=l2,epsilon=0.5", "fgsm") == {
        "noise(norm=l2)": [127.5],
        "noise": [4, 8],
        "pgd(norm=l2)": [127.5],
        "fgsm": [4, 8],
    }


def test_clean_alone_and_epsilons_in_any_order():
    assert plan("clean") == {}
    assert plan("clean", "fgsm", epsilons=("8/255", "1/255", "4/255"))["fgsm"] == [1, 4, 8]


def test_one_attack_at_two_epsilons_of_its_own_is_one_attack():
    assert plan("pgd:epsilon=2/255", "pgd:epsilon=1/255") == {"noise": [1, 2], "pgd": [1, 2]}


@pytest.mark.parametrize(
    ("attacks", "epsilons", "message"),
    [
        (("pgd", "pgd:steps=20"), ("8/255",), "attack pgd is given twice at the same epsilon"),
        (("pgd",), ("8",), r"did you mean 8/255\?"),
        (("pgd",), ("-8/255",), "must be 0 or more"),
        (("pdg",), ("8/255",), r"unknown attack 'pdg': did you mean 'pgd'"),
        (("pgd:stpes=3",), ("8/255",), "did you mean 'steps'"),
        (("pgd:steps=0",), ("8/255",), "greater than or equal to 1"),
        (("spsa:norm=l2",), ("8/255",), "norm"),
    ],
)
def test_bad_plans(attacks, epsilons, message):
    with pytest.raises(UsageError, match=message):
        plan(*attacks, epsilons=epsilons)


def test_the_same_thing_twice_is_refused():
    with pytest.raises(ValidationError, match="'pgd' is given twice"):
        EvaluationSettings(attacks=("pgd", "pgd"))


def test_settings_survive_json():
    settings = EvaluationSettings(models=("a", "b"), limit=None, seed=3)
    assert EvaluationSettings.model_validate_json(settings.model_dump_json()) == settings


@pytest.mark.parametrize("name", sorted(path.stem for path in shipped("attacks/suites").iterdir()))
def test_every_shipped_suite_can_be_planned(name):
    suite = load_suite(name)
    assert suite.name == name
    settings = EvaluationSettings.model_validate(suite.evaluation)
    images = plan_attacks(settings.chosen_attacks("image-classification"), settings.epsilons)
    texts = plan_swaps(settings.chosen_attacks("language-modelling"), settings.rates)
    assert {each.choice.label for each in images if each.choice.knowledge != "none"} or texts
    for model in settings.chosen_models():
        assert parse_model(model)


def test_a_suite_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    head = 'name = "mine"\nversion = 1\ndescription = "d"\n[evaluation]\n'
    path.write_text(head + 'attacks = ["fgsm"]\nlimit = "all"\n')
    settings = EvaluationSettings.model_validate(load_suite(str(path)).evaluation)
    assert settings == EvaluationSettings(attacks=("fgsm",), limit=None)
    path.write_text(head + 'attacks = ["fgsm"]\nepsilons = [0.03, 8]\n')
    settings = EvaluationSettings.model_validate(load_suite(str(path)).evaluation)
    with pytest.raises(UsageError, match=r"did you mean 8/255\?"):
        plan_attacks(settings.attacks, settings.epsilons)
    path.write_text(head + "limt = 3\n")
    with pytest.raises(UsageError, match="did you mean 'limit'"):
        load_suite(str(path))
    with pytest.raises(UsageError, match="did you mean 'vision-controls'"):
        load_suite("vision-control")


IMAGES = ("deit-micro-softmax", "deit-micro-elliptical")
LANGUAGE = ("lm-micro-softmax", "lm-micro-elliptical", "lm-micro-elliptical-released")


@pytest.mark.parametrize(
    ("given", "models"),
    [
        ({}, IMAGES),
        ({"attacks": ("clean",)}, IMAGES),
        ({"attacks": ("word-swap",)}, LANGUAGE),
        ({"data": "sotu"}, LANGUAGE),
        ({"attacks": ("word-swap", "pgd")}, LANGUAGE + IMAGES),
        ({"attacks": ("word-swap",), "models": ("x",)}, ("x",)),
    ],
)
def test_the_attacks_decide_the_models_unless_they_are_given(given, models):
    settings = EvaluationSettings(**given)
    assert settings.chosen_models() == models
    assert all(parse_model(model) for model in models if model != "x")


def test_each_task_gets_its_own_attacks_and_data():
    settings = EvaluationSettings(attacks=("pgd", "word-swap"), data=("text:a.txt", "npz:b.npz"))
    assert settings.chosen_attacks("image-classification") == ("pgd",)
    assert settings.chosen_attacks("language-modelling") == ("word-swap",)
    assert settings.chosen_data("image-classification") == "npz:b.npz"
    assert settings.chosen_data("language-modelling") == "text:a.txt"
    none = EvaluationSettings(attacks=("clean",))
    assert none.chosen_attacks("language-modelling") == ()
    assert none.chosen_data("language-modelling") == "sotu"
    with pytest.raises(UsageError, match="one set of images and one of text"):
        EvaluationSettings(data=("sotu", "text:a")).chosen_data("language-modelling")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attacks": ("word-swap",)}, "attack word-swap is for text, and no model given is"),
        ({"data": ("sotu",)}, "data sotu is for text"),
        ({"attacks": ("wrod-swap",)}, "did you mean 'word-swap'"),
        ({"data": ("stou",)}, "did you mean 'sotu'"),
        ({"window": 20}, r"window \(--window\) is for text, and no model given is; leave it out"),
        ({"rates": ("1%",)}, r"rates \(--rate\) is for text"),
    ],
)
def test_what_no_model_can_use_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        EvaluationSettings(**given).check_tasks(["image-classification"])


def test_a_setting_of_images_is_refused_for_text_alone():
    settings = EvaluationSettings(epsilons=("8/255",))
    with pytest.raises(UsageError, match=r"epsilons \(--epsilon\) is for images"):
        settings.check_tasks(["language-modelling"])
    settings.check_tasks(["language-modelling", "image-classification"])

"""`baseline` and `check` on planted cases, from the command line."""

import json


def verdicts(out):
    return {each["title"]: each["verdict"] for each in json.loads(out)["checks"]}


def test_a_damaged_checkpoint_is_regressed(elliptical_robust, words, frozen):
    code, out, _ = elliptical_robust(
        "check", words("damaged"), "--baseline", frozen, "--json", "--quiet"
    )
    assert code == 1
    assert set(verdicts(out).values()) == {"regressed"}
    assert set(verdicts(out)) == {
        "clean",
        "fgsm 2/255",
        "pgd(steps=3) 2/255",
        "worst-case linf 2/255",
    }


def test_a_slightly_tuned_checkpoint_passes(elliptical_robust, words, frozen):
    code, out, _ = elliptical_robust("check", words("tuned"), "--baseline", frozen, "--json")
    assert (code, json.loads(out)["same_weights"]) == (0, False)
    assert set(verdicts(out).values()) == {"pass"}


def test_a_checkpoint_between_them_is_inconclusive_and_says_how_many_would_do(
    elliptical_robust, words, frozen
):
    code, out, _ = elliptical_robust("check", words("nudged"), "--baseline", frozen, "--json")
    unsure = [each for each in json.loads(out)["checks"] if each["verdict"] == "inconclusive"]
    assert code == 3
    assert all(each["needed"] > 1000 for each in unsure)


def test_a_renamed_but_equal_checkpoint_passes_outright(elliptical_robust, words, frozen):
    model = words("renamed", card="renamed")
    code, out, error = elliptical_robust("check", model, "--baseline", frozen, "--json")
    assert error == ""
    report = json.loads(out)
    assert (code, report["same_weights"]) == (0, True)
    assert {each["reason"] for each in report["checks"]} == {"Same weights, same outcomes."}

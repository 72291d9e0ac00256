"""Flags in words, and the settings that they come from."""

import pytest

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import (
    MECHANISMS,
    Capabilities,
    capabilities_of,
    flag_notes,
    flag_words,
    setting_behind,
)


def test_the_setting_behind_a_flag():
    """The one that clears it when taken back to its default."""
    expected = {
        ("mom", "causal"): ({"scope": "head"}, ("scope", "head", "query")),
        ("mom", "stochastic"): ({"draw": "per-sample"}, ("draw", "per-sample", "fixed")),
        ("rkde", "batch_coupled"): (
            {"iterations": 3, "average": "released-batch-mean"},
            ("average", "released-batch-mean", "none"),
        ),
        ("mgk", "fixed_length"): ({"pi_scope": "position"}, ("pi_scope", "position", "head")),
        ("rvt_paas", "fixed_length"): ({"keys": "unit"}, None),
        ("elliptical", "causal"): ({"scaling": "max"}, None),
    }
    for (name, flag), (settings, behind) in expected.items():
        kind = MECHANISMS[name]
        assert setting_behind(kind, kind.Settings(**settings), flag) == behind


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("softmax", {}, ("causal",)),
        ("elliptical", {"scaling": "max"}, ("not causal", "detached")),
        ("elliptical", {"scaling": "max", "metric_scope": "prefix"}, ("causal", "detached")),
        ("elliptical", {"scaling": "max", "gradient_mode": "through"}, ("not causal",)),
        ("elliptical", {"scaling": "max", "metric": "random"}, ("causal", "stochastic")),
        ("linformer", {}, ("not causal", "fixed-length")),
        ("primal", {}, ("not causal", "auxiliary-loss")),
        (
            "spkde",
            {"gram_average": "released-batch-mean"},
            ("causal", "batch-coupled", "detached"),
        ),
    ],
)
def test_words(name, settings, words):
    assert flag_words(name, settings, causal_mask=True) == words
    assert flag_words(name, settings, causal_mask=False) == words[1:]
    said = {each.word for each in flag_notes(name, settings) if each.value == "yes"}
    assert said == set(words[1:])
    for each in flag_notes(name, settings):
        assert bool(each.meaning) == (each.value != "no" or each.word == "causal")


def test_flags_need_valid_settings():
    with pytest.raises(UsageError, match="attention mom: scope: "):
        capabilities_of("mom", {"scope": "tail"})
    with pytest.raises(UsageError, match="attention elliptical: scaling: field required"):
        flag_words("elliptical", {}, causal_mask=False)
    assert capabilities_of("kde", {}) == Capabilities()

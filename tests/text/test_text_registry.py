import pytest

from robustbench_elliptical.attacks.text import TEXT_ATTACKS, TextChoice, parse_text_attack
from robustbench_elliptical.core.errors import UnknownNameError, UsageError


def test_a_choice_states_its_settings_and_keeps_the_rate_apart():
    choice = parse_text_attack("word-swap:rate=0.025,replacement=unk")
    assert choice.label == "word-swap(replacement=unk)"
    assert choice.rate == 0.025
    assert choice.resolved() == {"replacement": "unk", "mode": "exact-rate"}
    assert TextChoice.of("word-swap", choice.resolved() | {"rate": 0.025}) == choice
    assert choice.knowledge == "none"
    assert parse_text_attack("word-swap").label == "word-swap"
    assert parse_text_attack("word-swap").rate is None
    assert parse_text_attack("char-noise:kind=keyboard").label == "char-noise(kind=keyboard)"


def test_a_choice_cannot_change():
    choice = parse_text_attack("word-swap")
    with pytest.raises(AttributeError):
        choice.rate = 0.5
    with pytest.raises(ValueError, match="frozen"):
        choice.settings.mode = "paper"


@pytest.mark.parametrize(
    "text", ["word-swap", "word-swap:replacement=random-word,mode=paper", "char-noise:kind=delete"]
)
def test_a_choice_runs(text, vocabulary, long_document):
    choice = parse_text_attack(text)
    result = choice.run(long_document, document_id="d", rate=0.1, lexicon=vocabulary, seed=1)
    direct = choice.entry.function(long_document, 0.1, "d", vocabulary, seed=1, **choice.resolved())
    assert result.words == direct.words
    assert 0 < result.realised_rate < 0.2
    own = parse_text_attack(f"{text}{',' if ':' in text else ':'}rate=0.1")
    assert own.run(long_document, document_id="d", lexicon=vocabulary, seed=1).words == result.words
    assert own.run(long_document, document_id="d", rate=0, lexicon=vocabulary).realised_rate == 0


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("word-swp", UnknownNameError, r"unknown text attack 'word-swp': did you mean 'word-swap'"),
        ("", UsageError, r"attack must be NAME or NAME:key=value,\.\.\., got ''"),
        (":rate=1", UsageError, r"attack must be NAME or NAME:key=value"),
        ("word-swap:", UsageError, "settings of attack word-swap must be key=value"),
        ("word-swap:unk", UsageError, "must be key=value,..., got 'unk'"),
        ("word-swap:mod=paper", UnknownNameError, r"'mod': did you mean 'mode'\?"),
        ("word-swap:mode=papr", UsageError, "mode: input should be 'exact-rate' or 'paper', got"),
        ("word-swap:rate=2.5", UsageError, r"between 0 and 1, got 2\.5: did you mean 0\.025\?"),
        ("word-swap:rate=few", UsageError, "rate must be a number between 0 and 1, got 'few'"),
        ("word-swap:rate=-0.1", UsageError, r"between 0 and 1, got -0\.1$"),
        ("word-swap:rate=nan", UsageError, "between 0 and 1, got 'nan'"),
        ("word-swap:rate=0.1,rate=0.2", UsageError, "is given twice"),
    ],
)
def test_slips_are_named(text, error, problem):
    with pytest.raises(error, match=problem):
        parse_text_attack(text)


def test_a_run_needs_a_rate():
    with pytest.raises(UsageError, match=r"attack word-swap needs a rate, such as rate=0\.025"):
        parse_text_attack("word-swap").run(["a"], document_id="d")


def test_a_fraction_is_a_rate():
    assert parse_text_attack("word-swap:rate=1/40").rate == 0.025


def test_every_entry_is_described():
    for name in TEXT_ATTACKS:
        entry = TEXT_ATTACKS[name]
        assert entry.name == name
        assert entry.summary
        assert entry.function.__doc__
        assert not {"rate", "seed", "lexicon", "document_id"} & set(entry.settings.model_fields)

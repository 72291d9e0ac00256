import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.core.specs import (
    format_epsilon,
    parse_epsilon,
    parse_settings,
    parse_spec,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8/255", 8 / 255),
        ("0.031", 0.031),
        ("0", 0.0),
        ("1", 1.0),
        (" 1 / 255 ", 1 / 255),
        (0.5, 0.5),
    ],
)
def test_epsilon(text, value):
    assert parse_epsilon(text) == value


@pytest.mark.parametrize("text", ["", "eight", "1/0", "nan", "inf", "8/255/2", "1e999", "0x1"])
def test_epsilon_that_is_no_number(text):
    with pytest.raises(UsageError, match=r"epsilon must be a number such as 8/255 or 0\.031, got"):
        parse_epsilon(text)


@pytest.mark.parametrize("text", ["-1/255", "-0.1", -0.5])
def test_negative_epsilon(text):
    with pytest.raises(UsageError, match="epsilon must be 0 or more"):
        parse_epsilon(text)


@given(st.integers(0, 12800))
def test_epsilon_round_trip(hundredths):
    epsilon = hundredths / 100 / 255
    assert parse_epsilon(format_epsilon(epsilon)) == pytest.approx(epsilon, rel=1e-12)


def test_epsilon_is_written_as_people_do():
    assert [format_epsilon(each) for each in (8 / 255, 0.5 / 255, 0.031, 0, 1, 3.0)] == [
        "8/255",
        "0.5/255",
        "0.031",
        "0",
        "1",
        "3",
    ]


def test_spec():
    assert parse_spec("pgd", "attack") == ("pgd", {})
    assert parse_spec("pgd:steps=40, step-size=2/255", "attack") == (
        "pgd",
        {"steps": "40", "step_size": "2/255"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "attack must be NAME"),
        (":steps=1", "attack must be NAME"),
        ("pgd:", "settings of attack pgd must be key=value"),
        ("pgd:steps", "settings of attack pgd must be key=value"),
        ("pgd:steps=", "settings of attack pgd must be key=value"),
        ("pgd:steps=1,steps=2", "setting steps of attack pgd is given twice"),
    ],
)
def test_bad_spec(text, message):
    with pytest.raises(UsageError, match=message):
        parse_spec(text, "attack")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card=a,b.toml,weights=model", {"card": "a,b.toml", "weights": "model"}),
        ("card=a, b,,c.toml", {"card": "a, b,,c.toml"}),
        ("weights=model,card=,x", None),
        ("weights=model,b.toml", None),
        ("a,card=b", None),
    ],
)
def test_only_paths_may_hold_commas(text, expected):
    if expected is not None:
        assert parse_settings(text, "model deit", ("card",)) == expected
        return
    with pytest.raises(UsageError, match="settings of model deit must be key=value"):
        parse_settings(text, "model deit", ("card",))

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.results import wilson_interval


def closed_form(successes, samples, z=1.959963984540054):
    share = successes / samples
    centre = share + z * z / (2 * samples)
    half = z * math.sqrt(share * (1 - share) / samples + z * z / (4 * samples * samples))
    return (centre - half) / (1 + z * z / samples), (centre + half) / (1 + z * z / samples)


@given(st.integers(1, 5000), st.data())
def test_wilson_interval_is_the_closed_form(samples, data):
    successes = data.draw(st.integers(0, samples))
    low, high = wilson_interval(successes, samples)
    expected = closed_form(successes, samples)
    assert low == pytest.approx(max(0, expected[0]), abs=1e-9)
    assert high == pytest.approx(min(1, expected[1]), abs=1e-9)
    assert 0 <= low <= successes / samples <= high <= 1


def test_more_successes_than_samples():
    with pytest.raises(ValueError, match="must not be greater"):
        wilson_interval(3, 2)

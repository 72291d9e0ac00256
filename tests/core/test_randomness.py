import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robustbench_elliptical.core.randomness import (
    keyed_generator,
    keyed_signs,
    keyed_uniform,
    sample_key,
)

KEYS = [sample_key(f"set/{index}") for index in range(6)]


@pytest.mark.parametrize("draw", [keyed_signs, keyed_uniform])
def test_a_draw_depends_on_its_own_key_only(draw):
    together = draw(3, "pgd/start", KEYS, (4, 5))
    alone = np.concatenate([draw(3, "pgd/start", [key], (4, 5)) for key in reversed(KEYS)])[::-1]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("draw", [keyed_signs, keyed_uniform])
def test_seed_stream_key_and_words_all_matter(draw):
    base = draw(0, "a", KEYS[:1], (64,), 0)
    for other in (
        draw(1, "a", KEYS[:1], (64,), 0),
        draw(0, "b", KEYS[:1], (64,), 0),
        draw(0, "a", KEYS[1:2], (64,), 0),
        draw(0, "a", KEYS[:1], (64,), 1),
    ):
        assert not np.array_equal(base, other)


def test_draws_are_pinned():
    # Written down once: a change of these numbers changes every published result.
    assert sample_key("fashion-mnist/test/00000") == 3911009262281213798
    assert keyed_signs(0, "spsa", [1], (8,)).tolist() == [[-1, 1, -1, -1, -1, -1, 1, 1]]
    np.testing.assert_allclose(
        keyed_uniform(0, "pgd", [1], (3,)), [[0.73996025, 0.81764066, 0.89640993]], rtol=1e-6
    )


def test_signs_are_balanced_and_uniform_is_uniform():
    signs = keyed_signs(0, "s", [1], (40_000,))[0]
    assert set(signs.tolist()) == {-1, 1}
    assert abs(signs.mean()) < 4 / np.sqrt(40_000)
    uniform = keyed_uniform(0, "u", [1], (40_000,))[0]
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 40_000)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (3, 3)])
def test_shapes(shape):
    assert keyed_signs(0, "s", KEYS, shape).shape == (6, *shape)
    assert keyed_uniform(0, "s", KEYS, shape).shape == (6, *shape)
    assert keyed_signs(0, "s", [], shape).shape == (0, *shape)


def test_global_generators_are_untouched():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    keyed_signs(0, "s", KEYS, (100,))
    keyed_uniform(0, "s", KEYS, (100,))
    assert torch.equal(torch_state, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_state, np.random.get_state()[1])


@given(st.text(), st.text())
def test_sample_keys_fit_int64_and_differ(first, second):
    assert 0 <= sample_key(first) < 2**63
    assert (sample_key(first) == sample_key(second)) == (first == second)


def test_generator_accepts_large_keys():
    assert keyed_generator(0, "s", 2**63 - 1).random() != keyed_generator(0, "s", 2**62).random()

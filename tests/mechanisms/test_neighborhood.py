import pytest
import torch

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention.neighborhood import neighbours


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": 3},  # a 3 x 3 grid after the class token
        {"kernel": 3, "layout": "sequence"},
        {"kernel": 3, "layout": "sequence", "dilation": [1, 2]},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("neighborhood", settings)


@pytest.mark.parametrize(("length", "kernel"), [(10, 3), (10, 5), (7, 7), (4, 9), (1, 3)])
def test_the_nearest_places(length, kernel):
    """Each place has its `kernel` nearest ones, or all; away from borders it is in the middle."""
    mask = neighbours(length, kernel)
    assert bool(mask.diagonal().all())
    for place in range(length):
        keys = mask[place].nonzero().flatten().tolist()
        assert len(keys) == min(kernel, length)
        assert keys == list(range(keys[0], keys[0] + len(keys)))
        others = set(range(length)) - set(keys)
        if others:
            # Shifted at a border only: what is left out is further away than all of one side.
            assert all(abs(place - each) > kernel // 2 for each in others)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dilation", [2, 3])
def test_dilation_is_attention_on_subsequences(dilation, causal):
    mask = neighbours(11, 3, dilation, causal=causal)
    expected = torch.zeros_like(mask)
    for start in range(dilation):
        places = torch.arange(start, 11, dilation)
        expected[places[:, None], places] = neighbours(len(places), 3, causal=causal)
    assert torch.equal(mask, expected)


def test_causal_windows_look_back(build):
    mask = build("neighborhood", {"kernel": 3}).mask(10, causal=True)
    for query in range(10):
        expected = list(range(max(query - 2, 0), query + 1))
        assert mask[query].nonzero().flatten().tolist() == expected


def test_grid_is_the_product_of_windows_and_the_class_token_is_dense(build):
    mask = build("neighborhood", {"kernel": 7}, num_tokens=197).mask(197)
    assert bool(mask[0].all())
    assert bool(mask[:, 0].all())
    assert torch.equal(mask[1:, 1:].sum(-1), torch.full((196,), 49))
    patches = mask[1:, 1:].reshape(14, 14, 14, 14)
    assert patches[7, 7].nonzero().tolist() == [
        [row, column] for row in range(4, 11) for column in range(4, 11)
    ]
    assert patches[0, 13].nonzero().tolist() == [
        [row, column] for row in range(7) for column in range(7, 14)
    ]


@pytest.mark.parametrize("causal", [False, True])
def test_a_large_kernel_is_softmax(causal, build, make_inputs, softmax_output):
    inputs = make_inputs(causal=causal)
    mechanism = build("neighborhood", {"kernel": 11})
    assert torch.allclose(mechanism(inputs, {})[0], softmax_output(inputs), atol=1e-14)
    assert not list(mechanism.parameters())


def test_dilations_alternate_over_blocks(build):
    found = [
        build("neighborhood", {"dilation": [1, 2]}, index=index).dilation for index in (0, 1, 2)
    ]
    assert found == [1, 2, 1]


def test_refusals(build, make_inputs):
    with pytest.raises(UsageError, match="a square grid of patches after 1 prefix tokens, got 9"):
        build("neighborhood")(make_inputs(tokens=9), {})
    with pytest.raises(UsageError, match="kernel must be odd"):
        build("neighborhood", {"kernel": 4})
    assert build("neighborhood", {"prefix_tokens": 0})(make_inputs(tokens=9), {})[0].shape[2] == 9

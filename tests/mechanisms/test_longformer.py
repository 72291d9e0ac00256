import pytest
import torch

from robustbench_elliptical.core.errors import UsageError

PLAIN = {"global_tokens": []}


def allowed(mechanism, inputs):
    return mechanism.explicit(inputs, {}).weights[0, 0] > 0


@pytest.mark.parametrize(
    ("settings", "linear"),
    [
        ({"window": 4}, False),
        ({"window": 4, "global_tokens": [0, 5]}, False),
        ({"window": 4, "dilation": 2, "global_projections": False}, True),
        (PLAIN, True),
    ],
)
def test_contract(settings, linear, keeps_the_contract):
    keeps_the_contract("longformer", settings, linear=linear)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_over_everything_is_softmax(causal, build, make_inputs, softmax_output):
    inputs = make_inputs(causal=causal)
    mechanism = build("longformer", {**PLAIN, "window": 18})
    assert torch.allclose(mechanism(inputs, {})[0], softmax_output(inputs), atol=1e-14)
    narrower = build("longformer", {**PLAIN, "window": 16})
    assert not torch.allclose(narrower(inputs, {})[0], softmax_output(inputs), atol=1e-6)


def test_no_window_returns_the_values(build, make_inputs):
    inputs = make_inputs()
    mechanism = build("longformer", {**PLAIN, "window": 0})
    assert torch.allclose(mechanism(inputs, {})[0], inputs.value, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dilation", [1, 3])
def test_who_attends_to_whom(causal, dilation, build, make_inputs):
    settings = {"window": 4, "dilation": dilation, "global_tokens": [0, 7, 99]}
    mask = allowed(build("longformer", settings, noise=0), make_inputs(causal=causal))
    for query in range(10):
        for key in range(10):
            step, rest = divmod(abs(query - key), dilation)
            near = rest == 0 and step <= 2
            expected = near or bool({query, key} & {0, 7})
            assert mask[query, key] == (expected and not (causal and key > query))


def test_receptive_field_grows_by_half_a_window_a_layer(build, make_inputs):
    mask = allowed(build("longformer", {**PLAIN, "window": 4}), make_inputs())
    reached = torch.eye(10, dtype=torch.bool)
    for layers in range(1, 5):
        reached = (reached.double() @ mask.double()) > 0
        assert int(reached[0].sum()) == min(2 * layers + 1, 10)


@pytest.mark.parametrize("causal", [False, True])
def test_global_rows_by_hand(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    mechanism = build("longformer", {"window": 2, "global_tokens": [0, 6]})
    output = mechanism(inputs, {})[0]
    change = mechanism.global_difference(inputs.tokens).reshape(2, 10, 3, 2, 4)
    query, key, value = (
        each + change[:, :, place].transpose(1, 2) for place, each in enumerate(inputs[:3])
    )
    for row in (0, 6):
        seen = slice(0, row + 1) if causal else slice(None)
        weights = (query[:, :, row : row + 1] @ key[:, :, seen].mT / 2).softmax(-1)
        expected = (weights @ value[:, :, seen])[:, :, 0]
        assert torch.allclose(output[:, :, row], expected, atol=1e-13)
    # Other rows attend with the local projections, to global tokens too.
    local = build("longformer", {"window": 2, "global_tokens": [0, 6], "global_projections": False})
    others = [1, 2, 3, 4, 5, 7, 8, 9]
    assert torch.allclose(local(inputs, {})[0][:, :, others], output[:, :, others], atol=1e-14)


def test_global_projections_start_as_copies(build, make_inputs):
    inputs, settings = make_inputs(), {"window": 4}
    own = build("longformer", settings, noise=0)
    copies = build("longformer", {**settings, "global_projections": False})
    assert torch.allclose(own(inputs, {})[0], copies(inputs, {})[0], rtol=0, atol=1e-15)
    assert not list(copies.parameters())


def test_odd_windows_are_refused(build):
    with pytest.raises(UsageError, match="window: input should be a multiple of 2"):
        build("longformer", {"window": 3})

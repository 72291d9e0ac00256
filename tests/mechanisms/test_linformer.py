import pytest
import torch

from robustbench_elliptical.core.errors import UsageError


@pytest.mark.parametrize("settings", [{"slots": 4}, {"slots": 4, "share_key_value": True}])
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("linformer", settings, causal=False, rows=False)


def test_identity_projections_are_softmax(build, make_inputs, softmax_output):
    mechanism = build("linformer", {"slots": 10})
    with torch.no_grad():
        for each in (mechanism.key_projection, mechanism.value_projection):
            each.copy_(torch.eye(10).expand_as(each))
    inputs = make_inputs()
    assert torch.allclose(mechanism(inputs, {})[0], softmax_output(inputs), atol=1e-14)
    assert torch.allclose(mechanism.explicit(inputs, {}).weights.sum(-1), torch.ones(1).double())


def test_the_formula_by_hand(build, make_inputs):
    mechanism, inputs = build("linformer", {"slots": 3}), make_inputs()
    for head in range(2):
        keys = mechanism.key_projection[head] @ inputs.key[:, head]
        values = mechanism.value_projection[head] @ inputs.value[:, head]
        weights = (inputs.query[:, head] @ keys.mT / 2).softmax(-1)
        assert weights.shape == (2, 10, 3)
        assert torch.allclose(mechanism(inputs, {})[0][:, head], weights @ values, atol=1e-14)


def test_fewer_tokens_use_the_first_columns(build, make_inputs):
    mechanism, short = build("linformer", {"slots": 3}), make_inputs(tokens=6)
    padded = make_inputs()
    for whole, part in zip(padded[1:3], short[1:3], strict=True):
        whole[:, :, :6], whole[:, :, 6:] = part, 0
    padded.query[:, :, :6] = short.query
    expected = mechanism(padded, {})[0][:, :, :6]
    assert torch.allclose(mechanism(short, {})[0], expected, atol=1e-14)


def test_a_future_token_changes_the_past(build, make_inputs):
    """Why there is no causal form."""
    mechanism, inputs = build("linformer", {"slots": 3}), make_inputs()
    before = mechanism(inputs, {})[0][:, :, 0].clone()
    inputs.value[:, :, 9] += 1
    assert not torch.allclose(mechanism(inputs, {})[0][:, :, 0], before, atol=1e-3)


def test_parameters(build):
    sizes = {
        (False, False): 2 * 2 * 3 * 10,
        (True, False): 2 * 3 * 10,
        (False, True): 2 * 3 * 10,
        (True, True): 3 * 10,
    }
    for (heads, key_value), expected in sizes.items():
        settings = {"slots": 3, "share_heads": heads, "share_key_value": key_value}
        mechanism = build("linformer", settings)
        assert sum(each.numel() for each in mechanism.parameters()) == expected
    # Two models never share a projection, and no more slots than tokens are kept.
    assert build("linformer").key_projection.shape == (2, 10, 10)


def test_too_many_tokens_are_refused(build, make_inputs):
    with pytest.raises(UsageError, match="built for at most 10 tokens, got 11"):
        build("linformer")(make_inputs(tokens=11), {})

import pytest
import torch

from robustbench_elliptical.models.attention.lightning import decay_slopes, decayed_attention

BARE = {"activation": False, "output_norm": False, "output_gate": False}


def recurrent(query, key, value, slopes):
    """The state token by token."""
    fading = torch.exp(-slopes)[:, None, None]
    state, outputs = torch.zeros(2, 2, 4, 4).double(), []
    for place in range(query.shape[-2]):
        q, k, v = (each[:, :, place : place + 1] for each in (query, key, value))
        state = fading * state + k.mT @ v
        outputs.append(q @ state)
    return torch.cat(outputs, dim=-2)


@pytest.mark.parametrize("settings", [{}, {"block": 3}, {**BARE, "block": 4}])
def test_contract(settings, keeps_the_contract):
    linear = settings.get("activation") is False
    keeps_the_contract("lightning", settings, rows=False, linear=linear)


@pytest.mark.parametrize("block_size", [1, 3, 5, 10, 64])
@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.1, 2.0), (1e-6, 50.0)])
def test_blocks_equal_the_recurrence_and_the_masked_product(block_size, slopes, make_inputs):
    query, key, value = make_inputs()[:3]
    rates = torch.tensor(slopes).double()
    blocked = decayed_attention(query, key, value, rates, block_size)
    places = torch.arange(10.0).double()
    distance = places[:, None] - places
    decay = torch.exp(-rates[:, None, None] * distance.clamp(min=0)) * (distance >= 0)
    assert torch.allclose(blocked, (query @ key.mT * decay) @ value, atol=1e-12)
    assert torch.allclose(blocked, recurrent(query, key, value, rates), atol=1e-12)


def test_limits_of_the_decay(make_inputs):
    query, key, value = make_inputs()[:3]
    own = (query * key).sum(-1, keepdim=True) * value
    fast = decayed_attention(query, key, value, torch.full((2,), 1e4).double(), 4)
    assert torch.allclose(fast, own, atol=1e-12)
    running = (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(2)
    never = decayed_attention(query, key, value, torch.zeros(2).double(), 4)
    assert torch.allclose(never, torch.einsum("bhnd,bhnde->bhne", query, running), atol=1e-12)


def test_no_overflow_far_from_the_diagonal():
    query = torch.ones(1, 1, 3000, 1)
    output = decayed_attention(query, query, query, torch.tensor([1.0]), 1000)
    assert torch.allclose(output[0, 0, -1, 0], torch.tensor(1 / (1 - torch.e**-1)))


@pytest.mark.parametrize("causal", [False, True])
def test_the_bare_mechanism_is_the_formula(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    mechanism = build("lightning", BARE)
    output = mechanism(inputs, {})[0]
    for head, slope in enumerate(mechanism.slopes):
        for i in range(10):
            total = 0
            for j in range(i + 1 if causal else 10):
                product = (inputs.query[:, head, i] * inputs.key[:, head, j]).sum(-1, keepdim=True)
                total = (
                    total + torch.e ** (-slope * abs(i - j)) * product * inputs.value[:, head, j]
                )
            assert torch.allclose(output[:, head, i], total, atol=1e-12)
    assert not list(mechanism.parameters())


def test_norm_over_all_heads_then_gate(build, make_inputs):
    inputs, mechanism = make_inputs(causal=True), build("lightning")
    activated = inputs._replace(
        **{
            name: torch.nn.functional.silu(getattr(inputs, name))
            for name in ("query", "key", "value")
        }
    )
    bare = build("lightning", BARE)(activated, {})[0].transpose(1, 2).flatten(2)
    gate = torch.sigmoid(mechanism.gate_up(mechanism.gate_down(inputs.tokens)))
    expected = (mechanism.layer_norm(bare) * gate).reshape(2, 10, 2, 4).transpose(1, 2)
    assert torch.allclose(mechanism(inputs, {})[0], expected, atol=1e-12)


def test_slopes(block):
    first, last = (decay_slopes(block(index=index)) for index in (0, 2))
    assert first == pytest.approx((1.00001 / 16, 1.00001 / 256))
    assert last == pytest.approx((1e-5 / 16, 1e-5 / 256))
    assert decay_slopes(block(index=0, depth=1)) == first


def test_without_decay_the_order_of_tokens_does_not_matter(build, make_inputs):
    inputs, order = make_inputs(), torch.tensor([3, 0, 6, 9, 1, 5, 2, 4, 8, 7])
    moved = inputs._replace(
        **{name: getattr(inputs, name)[:, :, order] for name in ("query", "key", "value")},
        tokens=inputs.tokens[:, order],
    )
    mechanism = build("lightning", {"decay": False, "block": 3})
    expected = mechanism(inputs, {})[0][:, :, order]
    assert torch.allclose(mechanism(moved, {})[0], expected, atol=1e-12)

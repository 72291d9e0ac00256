import pytest
import torch

from robustbench_elliptical.core.errors import UsageError

ONE = {"buckets": 1, "chunk": 20, "hashes": 1}


def unit(query):
    """Keys of length 1, up to the constant under the root."""
    return query * (query.square().mean(-1, keepdim=True) + 1e-6).rsqrt() / 2


def published(mechanism, inputs, *, chunk, correct, scale=0.5):
    """The paper's algorithm: sort, cut, attend in each round with a self logit of -1e5, combine."""
    query, value = inputs.query, inputs.value
    buckets, tokens = mechanism.buckets(query), query.shape[-2]
    output = torch.empty_like(value)
    for sample, head in ((sample, head) for sample in range(2) for head in range(2)):
        sets = []
        for bucket in buckets[:, sample, head].tolist():
            order = sorted(range(tokens), key=lambda place: (bucket[place], place))
            cut = {place: number // chunk for number, place in enumerate(order)}
            sets.append(
                [
                    [
                        j
                        for j in range(tokens)
                        if bucket[j] == bucket[i]
                        and cut[i] - cut[j] in (0, 1)
                        and not (inputs.causal and j > i)
                    ]
                    for i in range(tokens)
                ]
            )
        keys = unit(query[sample, head])
        for i in range(tokens):
            rounds = []
            for each in sets:
                logits = []
                for j in each[i]:
                    times = sum(j in other[i] for other in sets)
                    logit = (
                        query[sample, head, i] @ keys[j] * scale if j != i else torch.tensor(-1e5)
                    )
                    logits.append(logit - correct * torch.tensor(float(times)).log())
                logits = torch.stack(logits).double()
                rounds.append(
                    (logits.logsumexp(0), logits.softmax(0) @ value[sample, head, each[i]])
                )
            weights = torch.stack([each for each, _ in rounds]).softmax(0)
            output[sample, head, i] = weights @ torch.stack([each for _, each in rounds])
    return output


@pytest.mark.parametrize(
    "settings",
    [
        {"buckets": 2, "chunk": 3},
        {"buckets": 4, "chunk": 2, "hashes": 3, "duplicates": "released-each-round"},
        {"scale": "none"},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("reformer", settings)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("duplicates", ["once", "released-each-round"])
def test_the_published_algorithm(duplicates, causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    settings = {"buckets": 2, "chunk": 3, "hashes": 3, "chunks": "released-sorted"}
    mechanism = build("reformer", {**settings, "duplicates": duplicates})
    expected = published(mechanism, inputs, chunk=3, correct=float(duplicates == "once"))
    assert torch.allclose(mechanism(inputs, {})[0], expected, atol=1e-10)
    assert torch.allclose(mechanism.explicit(inputs, {}).output, expected, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_one_bucket_is_shared_softmax_with_the_self_rule(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    logits = inputs.query @ unit(inputs.query).mT / 2
    logits = logits - 1e9 * torch.eye(10)
    if causal:
        logits = logits.masked_fill(torch.ones(10, 10).triu(1) > 0, -torch.inf)
    weights = build("reformer", ONE).explicit(inputs, {}).weights
    assert torch.allclose(weights, logits.softmax(-1), atol=1e-12)
    assert float(weights[0, 0, 1, 1]) == 0
    if causal:
        assert float(weights[0, 0, 0, 0]) == 1


def test_many_rounds_approach_it(build, make_inputs):
    inputs = make_inputs()
    full = build("reformer", ONE)(inputs, {})[0]
    settings = {"buckets": 4, "chunk": 20}
    errors = [
        float((build("reformer", {**settings, "hashes": rounds})(inputs, {})[0] - full).abs().max())
        for rounds in (1, 200)
    ]
    assert errors[0] > 0.1
    assert errors[1] < 1e-9


def test_published_chunks_leak_under_a_causal_mask_and_these_do_not(build, make_inputs):
    """Where sorted chunks are cut depends on later tokens, though no weight is on any of them."""
    leaks = {}
    for chunks in ("per-bucket", "released-sorted"):
        mechanism = build("reformer", {"buckets": 2, "chunk": 2, "hashes": 1, "chunks": chunks})
        leaks[chunks] = 0.0
        for seed in range(5):
            inputs = make_inputs(tokens=16, causal=True, seed=seed)
            changed = inputs._replace(query=inputs.query.clone())
            changed.query[:, :, 9:] *= -1
            moved = mechanism(changed, {})[0] - mechanism(inputs, {})[0]
            leaks[chunks] = max(leaks[chunks], float(moved[:, :, :9].abs().max()))
        weights = mechanism.explicit(inputs, {}).weights
        assert torch.equal(weights, weights.tril())
    assert leaks["per-bucket"] == 0
    assert leaks["released-sorted"] > 1e-2


def test_hashes_belong_to_seed_block_head_and_round(build):
    draws = build("reformer").rotations
    assert draws.shape == (2, 2, 4, 4)
    assert torch.equal(draws, build("reformer", num_tokens=50).rotations)
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[:, 0], draws[:, 1])
    assert not torch.equal(draws, build("reformer", {"seed": 1}).rotations)
    assert not torch.equal(draws, build("reformer", index=2).rotations)
    assert "rotations" in build("reformer").state_dict()


def test_the_global_generator_is_left_alone(build):
    before = torch.random.get_rng_state()
    build("reformer")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_buckets_are_those_of_the_argmax(build, make_inputs):
    mechanism, inputs = build("reformer", {"buckets": 6}), make_inputs()
    turned = torch.einsum("bhnd,rhdk->rbhnk", inputs.query, mechanism.rotations)
    expected = torch.cat([turned, -turned], -1).argmax(-1)
    assert torch.equal(mechanism.buckets(inputs.query), expected)
    assert torch.equal(mechanism.buckets(inputs.query * 7), expected)
    assert int(expected.max()) == 5


def test_the_keys_are_not_used(build, make_inputs):
    mechanism, inputs = build("reformer"), make_inputs()
    other = inputs._replace(key=inputs.key + 1)
    assert torch.equal(mechanism(other, {})[0], mechanism(inputs, {})[0])


def test_odd_numbers_of_buckets_are_refused(build):
    with pytest.raises(UsageError, match="buckets must be even, or 1 for no hashing, got 3"):
        build("reformer", {"buckets": 3})

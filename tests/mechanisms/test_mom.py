import pytest
import torch
import torch.nn.functional as functional

from robustbench_elliptical.core.errors import UsageError

SUBSETS = {"mode": "subsample", "blocks": 3, "outlier_fraction": 0.3}


def unit(inputs):
    return inputs._replace(key=functional.normalize(inputs.key, dim=-1))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"blocks": 3, "include_self": True},
        {"blocks": 4, "median": "upper", "normalize_keys": False},
        {"blocks": 3, "draw": "per-sample"},
        SUBSETS,
        {**SUBSETS, "draw": "per-sample"},
    ],
)
def test_contract(settings, keeps_the_contract):
    keeps_the_contract("mom", settings)


@pytest.mark.parametrize("settings", [{"blocks": 3}, SUBSETS])
def test_contract_of_one_block_a_head(settings, keeps_the_contract):
    keeps_the_contract("mom", {**settings, "scope": "head"}, causal=False)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("settings", [{"blocks": 3}, {"blocks": 4, "seed": 2}, SUBSETS])
def test_the_definition_as_a_loop(settings, causal, build, make_inputs):
    inputs, mechanism = make_inputs(causal=causal), build("mom", settings)
    members = mechanism.members(inputs)[0]
    kernel = torch.exp(-0.5 * torch.cdist(inputs.query, unit(inputs).key).square())
    output = mechanism(inputs, {})[0]
    for sample, head in ((0, 0), (1, 1)):
        for i in range(10):
            scores = kernel[sample, head, i]
            blocks = [each[i if len(each) > 1 else 0].nonzero().flatten() for each in members]
            blocks = [each[each <= i] if causal else each for each in blocks]
            blocks = sorted(
                (each for each in blocks if len(each)), key=lambda each: float(scores[each].mean())
            )
            chosen = blocks[(len(blocks) - 1) // 2]
            share = scores[chosen] / scores[chosen].sum()
            expected = share @ inputs.value[sample, head, chosen]
            assert torch.allclose(output[sample, head, i], expected, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_one_block_is_kde(causal, build, make_inputs):
    inputs = make_inputs(causal=causal)
    expected = build("kde")(inputs, {})[0]
    assert torch.allclose(build("mom", {"blocks": 1})(inputs, {})[0], expected, atol=1e-14)
    whole = {**SUBSETS, "outlier_fraction": 0}
    assert torch.allclose(build("mom", whole)(inputs, {})[0], expected, atol=1e-14)


@pytest.mark.parametrize("place", [-50.0, 0.0, 3.0])
def test_a_minority_of_blocks_cannot_move_the_median_past_the_clean_ones(place, build, make_inputs):
    inputs = make_inputs(tokens=30)
    mechanism = build("mom", {"blocks": 5, "normalize_keys": False}, num_tokens=30)
    members = mechanism.members(inputs)[0, :, 0]
    key = inputs.key.clone()
    key[:, :, members[1] | members[4]] = place
    inputs = inputs._replace(key=key)
    kernel = torch.exp(-0.5 * torch.cdist(inputs.query, key).square())
    clean = torch.stack([kernel[..., members[each]].mean(-1) for each in (0, 2, 3)])
    mask = mechanism.median_block(inputs)
    density = (kernel * mask).sum(-1) / mask.sum(-1)
    assert bool((density >= clean.amin(0) - 1e-12).all())
    assert bool((density <= clean.amax(0) + 1e-12).all())


def test_permuting_tokens_with_their_blocks_permutes_the_output(build, make_inputs):
    inputs, mechanism = make_inputs(), build("mom", {"blocks": 3})
    expected = mechanism(inputs, {})[0]
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1))
    mechanism.draws = mechanism.draws[order]
    moved = inputs._replace(
        query=inputs.query[:, :, order],
        key=inputs.key[:, :, order],
        value=inputs.value[:, :, order],
    )
    assert torch.allclose(mechanism(moved, {})[0], expected[:, :, order], atol=1e-12)


class TestBlocks:
    def test_a_partition_is_even_in_every_prefix(self, build, make_inputs):
        mechanism = build("mom", {"blocks": 3}, num_tokens=40)
        for tokens in (1, 2, 7, 40, 100):
            members = mechanism.members(make_inputs(tokens=tokens))[0, :, 0]
            assert bool((members.sum(0) == 1).all())
            sizes = members.sum(1)
            assert int(sizes.max() - sizes.min()) <= 1

    @pytest.mark.parametrize("tokens", [1, 2, 10, 25])
    def test_subsets_have_their_share(self, tokens, build, make_inputs):
        mechanism = build("mom", SUBSETS)
        members = mechanism.members(make_inputs(tokens=tokens))
        assert members.shape == (1, 3, 1, tokens)
        assert members.sum(-1).unique().tolist() == [max(1, int(0.7 * tokens))]
        if tokens > 9:
            assert not torch.equal(members[0, 0], members[0, 1])

    @pytest.mark.parametrize("settings", [{"blocks": 3}, SUBSETS])
    def test_a_causal_prefix_is_the_shorter_input(self, settings, build, make_inputs):
        """Longer than the buffer too: the draws of a prefix are a prefix of the draws."""
        mechanism, inputs = build("mom", settings), make_inputs(tokens=23, causal=True)
        whole = mechanism(inputs, {})[0]
        for length in (1, 5, 10, 17):
            short = type(inputs)(*(each[..., :length, :] for each in inputs[:4]), causal=True)
            expected = mechanism(short, {})[0]
            assert torch.allclose(whole[:, :, :length], expected, atol=1e-13)

    @pytest.mark.parametrize("settings", [{"blocks": 3}, SUBSETS])
    def test_belong_to_seed_and_layer_and_not_to_the_state_dict(self, settings, build):
        before = torch.random.get_rng_state()
        draws = build("mom", settings).draws
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.equal(draws, build("mom", settings).draws)
        assert torch.equal(draws, build("mom", settings, num_tokens=30).draws[:10])
        assert not torch.equal(draws, build("mom", {**settings, "seed": 1}).draws)
        assert not torch.equal(draws, build("mom", settings, index=2).draws)
        assert not build("mom", settings).state_dict()
        assert torch.equal(build("mom", settings).to(torch.bfloat16).draws, draws)

    def test_a_samples_own_follow_its_key(self, build, make_inputs):
        mechanism, inputs = build("mom", {"draw": "per-sample"}), make_inputs()
        members = mechanism.members(inputs)
        assert not torch.equal(members[0], members[1])
        again = mechanism.members(inputs._replace(sample_keys=inputs.sample_keys.flip(0)))
        assert torch.equal(again, members.flip(0))
        without = mechanism.members(inputs._replace(sample_keys=None))
        assert torch.equal(without[0], without[1])


def test_the_released_choice_by_hand_couples_the_batch(build, make_inputs):
    """One subset for the whole batch: that of the upper median sum of log kernels."""
    settings = {**SUBSETS, "blocks": 4, "scope": "released-batch", "median": "upper"}
    mechanism = build("mom", settings)
    couples = False
    for seed in range(6):
        inputs = make_inputs(seed=seed)
        logs = -0.5 * torch.cdist(inputs.query, unit(inputs).key).square()
        subsets = mechanism.members(inputs)[0, :, 0]
        sums = torch.stack([logs[..., each].sum() for each in subsets])
        chosen = subsets[sums.argsort()[2]]
        kept = inputs._replace(key=inputs.key[:, :, chosen], value=inputs.value[:, :, chosen])
        output = mechanism(inputs, {})[0]
        assert torch.allclose(output, build("kde")(kept, {})[0], atol=1e-12)
        alone = type(inputs)(*(each[:1] for each in inputs[:4]))
        couples |= not torch.allclose(mechanism(alone, {})[0], output[:1], atol=1e-6)
    assert couples


def test_a_head_takes_the_median_mean_of_log_kernels(build, make_inputs):
    inputs, mechanism = make_inputs(), build("mom", {"blocks": 3, "scope": "head"})
    logs = -0.5 * torch.cdist(inputs.query, unit(inputs).key).square()
    blocks = mechanism.members(inputs)[0, :, 0]
    mask = mechanism.median_block(inputs)
    for sample, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
        means = torch.stack([logs[sample, head][:, each].mean() for each in blocks])
        expected = blocks[means.argsort()[1]].expand(10, 10)
        assert torch.equal(mask[sample, head], expected)


def test_an_even_number_of_blocks_has_two_medians(build, make_inputs):
    inputs = make_inputs()
    lower, upper = (
        build("mom", {"blocks": 2, "median": median}).median_block(inputs)
        for median in ("lower", "upper")
    )
    assert torch.equal(lower, ~upper)


def test_include_self_adds_the_diagonal_alone(build, make_inputs):
    inputs = make_inputs()
    without = build("mom").median_block(inputs)
    mask = build("mom", {"include_self": True}).median_block(inputs)
    assert torch.equal(mask, without | torch.eye(10, dtype=torch.bool))


def test_scopes_that_see_the_future_refuse_a_causal_mask(build, make_inputs):
    for scope in ("head", "released-batch"):
        with pytest.raises(UsageError, match=f"no causal form with scope {scope}; use query"):
            build("mom", {"scope": scope})(make_inputs(causal=True), {})

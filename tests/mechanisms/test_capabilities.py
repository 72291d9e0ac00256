"""The flags of a mechanism under its settings are what is measured under them.

Every choice and switch of every registered mechanism is tried, alone and in pairs.
"""

from contextlib import suppress
from dataclasses import asdict
from functools import cache
from itertools import combinations, product
from typing import Literal, get_args, get_origin

import pytest
import torch
from pydantic import ValidationError

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import (
    AUXILIARY_LOSS,
    MECHANISMS,
    AuxiliaryLoss,
    HeadInputs,
    LayerShape,
    build_mechanism,
)

# Sizes at which a mechanism does something on few tokens.
SIZES = {
    "elliptical": {"scaling": "max"},
    "linformer": {"slots": 3},
    "longformer": {"window": 4},
    "mom": {"blocks": 3, "outlier_fraction": 0.4},
    "neighborhood": {"kernel": 3},
    "nystromformer": {"landmarks": 3, "convolution": 3},
    "performer": {"features": 8},
    "primal": {"rank": 2},
    "reformer": {"buckets": 2, "chunk": 2},
    "spkde": {"iterations": 3},
}
# What is neither a choice nor a switch and may matter.
VALUES = {
    "elliptical": {"blocks": [(), (2,)], "random_floor": [0.3], "delta": [5.0]},
    "mom": {"blocks": [1], "outlier_fraction": [0.0]},
    "nystromformer": {"convolution": [0], "iterations": [2]},
    "primal": {"loss_weight": [0.0]},
    "reformer": {"buckets": [1], "hashes": [1]},
    "rkde": {"iterations": [2], "gram_coefficient": [0.3]},
    "spkde": {"outlier_fraction": [0.0, 0.5], "gram_coefficient": [0.3]},
}
NAMES = sorted(MECHANISMS)
TENSORS = ("query", "key", "value", "tokens")
LAYER = LayerShape(dim=8, num_heads=2, head_dim=4, index=1, depth=3, num_tokens=10)


def alternatives(name):
    """Return every (setting, value) beside the defaults."""
    for setting, field in MECHANISMS[name].Settings.model_fields.items():
        values = list(VALUES.get(name, {}).get(setting, ()))
        for part in (field.annotation, *get_args(field.annotation)):
            if part is bool:
                values += [True, False]
            elif get_origin(part) is Literal:
                values += get_args(part)
        yield from ((setting, value) for value in values)


@cache
def cases(name):
    single = list(alternatives(name))
    chosen = [(), *((each,) for each in single), *combinations(single, 2)]
    found = {}
    for each in chosen:
        settings = {**SIZES.get(name, {}), **dict(each)}
        with suppress(ValidationError):
            MECHANISMS[name].Settings(**settings)
            found[repr(sorted(settings.items()))] = settings
    return list(found.values())


def build(name, settings):
    with torch.random.fork_rng():
        torch.manual_seed(2)
        mechanism = build_mechanism(name, LAYER, settings).double().eval()
        with torch.no_grad():
            for parameter in mechanism.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return mechanism


def make_inputs(tokens=10, batch=3, seed=0, *, causal=False):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, 2, tokens, 4)
    query, key, value, previous = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(4)
    )
    flat = torch.randn(batch, tokens, 8, generator=generator, dtype=torch.float64)
    return HeadInputs(query, key, value, flat, causal, torch.arange(5, 5 + batch)), previous


def attend(mechanism, inputs, previous):
    return mechanism(inputs, {"values": previous})[0]


def changed(inputs, previous, change):
    return (
        inputs._replace(**{name: change(getattr(inputs, name)) for name in TENSORS}),
        change(previous),
    )


def refused(mechanism, inputs, previous):
    try:
        attend(mechanism, inputs, previous)
    except UsageError as error:
        return str(error)
    return ""


def causal(mechanism):
    moved = 0.0
    for seed, place in product(range(2), (3, 7)):
        inputs, previous = make_inputs(seed=seed, causal=True)
        if refusal := refused(mechanism, inputs, previous):
            assert "has no causal form" in refusal
            return "no"
        before = attend(mechanism, inputs, previous)

        def later(each, place=place):
            return torch.cat([each[..., :place, :], -2 * each[..., place:, :]], dim=-2)

        after = attend(mechanism, *changed(inputs, previous, later))
        moved = max(moved, float((after - before).detach()[..., :place, :].abs().max()))
    assert moved < 1e-11 or moved > 1e-4
    return "leaks" if moved > 1e-4 else "exact"


def fixed_length(mechanism):
    refusal = refused(mechanism, *make_inputs(tokens=17))
    assert not refusal or "at most 10 tokens" in refusal
    return bool(refusal)


def stochastic(mechanism):
    inputs, previous = make_inputs()
    first, again = (attend(mechanism, inputs, previous) for _ in range(2))
    assert torch.equal(first, again)
    others = [inputs._replace(sample_keys=inputs.sample_keys + shift) for shift in (50, 90)]
    return not all(torch.equal(attend(mechanism, each, previous), first) for each in others)


def batch_coupled(mechanism):
    moved = 0.0
    for seed in range(2):
        inputs, previous = make_inputs(seed=seed)
        together = attend(mechanism, inputs, previous)
        for row in (0, 2):
            one = slice(row, row + 1)
            alone, before = changed(inputs, previous, lambda each, one=one: each[one])
            alone = alone._replace(sample_keys=inputs.sample_keys[one])
            moved = max(
                moved,
                float((attend(mechanism, alone, before) - together[one]).detach().abs().max()),
            )
    assert moved < 1e-12 or moved > 1e-6
    return moved > 1e-6


def detached_statistics(mechanism):
    """Along one direction; with gradient_mode through there is nothing that gradients skip."""
    inputs, previous = make_inputs(batch=1)
    leaves = [each.clone().requires_grad_() for each in (*inputs[:4], previous)]
    generator = torch.Generator().manual_seed(7)
    direction = [torch.randn(each.shape, generator=generator).double() for each in leaves]
    weight = torch.randn(inputs.value.shape, generator=generator).double()

    def loss(tensors):
        given = inputs._replace(**dict(zip(TENSORS, tensors, strict=False)))
        return (attend(mechanism, given, tensors[4]) * weight).sum()

    with torch.no_grad():
        ends = [
            loss([each + step * way for each, way in zip(leaves, direction, strict=True)])
            for step in (1e-6, -1e-6)
        ]
    exact = float(ends[0] - ends[1]) / 2e-6
    slopes = {}
    for mode in ("detached", "through"):
        mechanism.gradient_mode = mode
        found = torch.autograd.grad(loss(leaves), leaves, allow_unused=True)
        pairs = zip(found, direction, strict=True)
        slopes[mode] = sum(float((each * way).sum()) for each, way in pairs if each is not None)
        skips = abs(slopes[mode] - exact) > 1e-5 * max(1, abs(exact))
        assert skips == mechanism.skips_gradients
    assert slopes["through"] == pytest.approx(exact, rel=1e-5, abs=1e-5)
    return abs(slopes["detached"] - exact) > 1e-5 * max(1, abs(exact))


def auxiliary_loss(mechanism):
    inputs, previous = make_inputs()
    with torch.no_grad(), AuxiliaryLoss(mechanism) as auxiliary:
        _, state = mechanism(inputs, {"values": previous})
    added = float(auxiliary.mean()) > 0
    assert added == bool((state.get(AUXILIARY_LOSS, torch.zeros(1)) > 0).any())
    return added


def row_stochastic(mechanism):
    distributions = []
    for size in (1.0, 0.2):
        inputs, previous = changed(*make_inputs(), lambda each, size=size: size * each)
        weights = mechanism.explicit(inputs, {"values": previous})[1]
        sums = (weights.sum(-1) - 1).detach().abs()
        distributions.append(float(sums.max()) < 1e-12 and bool((weights >= 0).all()))
    return all(distributions)


MEASURES = {
    each.__name__: each
    for each in (
        causal,
        fixed_length,
        stochastic,
        batch_coupled,
        detached_statistics,
        auxiliary_loss,
        row_stochastic,
    )
}


@pytest.mark.parametrize("name", NAMES)
def test_flags_are_what_is_measured(name):
    seen = {flag: set() for flag in MEASURES}
    for settings in cases(name):
        mechanism = build(name, settings)
        flags = asdict(mechanism.flags)
        assert set(flags) == set(MEASURES)
        for flag, measure in MEASURES.items():
            if settings.get("blocks") == (2,):  # this block is plain, the flags are the model's
                continue
            assert measure(mechanism) == flags[flag], (flag, settings)
        for flag, value in flags.items():
            assert value != "with-settings"
            seen[flag].add(value)
    for flag, value in asdict(MECHANISMS[name].capabilities).items():
        assert (len(seen[flag]) > 1) == (value == "with-settings"), flag
        assert value == "with-settings" or seen[flag] == {value}

import pytest
import torch
from torch.nn.functional import cross_entropy

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.language import causality_probe


class Table:
    """A model that reads one token `ahead` of the position it scores; 0: a causal bigram table."""

    def __init__(self, ahead, strength=1.0):
        self.ahead = ahead
        generator = torch.Generator().manual_seed(0)
        self.logits = strength * torch.randn(50, 50, generator=generator)

    def token_losses(self, tokens, targets, positions=None):
        assert positions is None
        seen = tokens.roll(-self.ahead, dims=1)
        return cross_entropy(self.logits[seen].transpose(1, 2), targets, reduction="none")


@pytest.mark.parametrize("variant", ["softmax", "elliptical"])
def test_a_causal_decoder_is_clean(variant, small_model, windows):
    finding = causality_probe(small_model(variant), windows, vocab_size=50)
    assert not finding.leaks
    assert finding.largest_change == 0
    assert finding.losses_compared == 3 * (3 + 6 + 9 + 11)


def test_the_released_variant_is_found(small_model, windows):
    finding = causality_probe(small_model("elliptical-released"), windows, vocab_size=50)
    assert finding.leaks
    assert finding.largest_change > 1e-3
    assert finding.position < finding.changed_from


def test_the_released_weights_leak_under_the_released_metric_only(vectors, released_model):
    tokens = torch.cat((vectors.tokens, vectors.targets[:, -1:]), dim=1)
    size = vectors.architecture.vocab_size
    leaks = {
        variant: causality_probe(released_model(variant), tokens, vocab_size=size).leaks
        for variant in ("softmax", "elliptical", "elliptical-released")
    }
    assert leaks == {"softmax": False, "elliptical": False, "elliptical-released": True}


def test_float_noise_is_no_leak(small_model, windows):
    finding = causality_probe(small_model("elliptical").float(), windows, vocab_size=50)
    assert not finding.leaks


@pytest.mark.parametrize(("ahead", "leaks"), [(0, False), (1, True), (3, True)])
def test_any_model_with_token_losses(ahead, leaks, windows):
    finding = causality_probe(Table(ahead), windows, vocab_size=50)
    assert finding.leaks is leaks
    assert (finding.largest_change > 0) is leaks
    if ahead == 1:  # only the position right before the change sees it
        assert finding.position == finding.changed_from - 1


def test_the_tolerance_decides(windows):
    weak = Table(1, strength=1e-3)
    change = causality_probe(weak, windows, vocab_size=50).largest_change
    assert 1e-4 < change < 1e-2
    assert not causality_probe(weak, windows, vocab_size=50, tolerance=change).leaks
    assert causality_probe(weak, windows, vocab_size=50, tolerance=change / 2).leaks


def test_every_token_from_the_place_on_is_another_one(windows):
    seen = []

    class Spy(Table):
        def token_losses(self, tokens, targets, positions=None):
            seen.append((tokens, targets))
            return super().token_losses(tokens, targets)

    causality_probe(Spy(0), windows, vocab_size=50)
    (original, targets), *changed = seen
    assert torch.equal(original, windows[:, :-1])
    for place, (tokens, same_targets) in zip((3, 6, 9, 11), changed, strict=True):
        assert torch.equal(tokens[:, :place], original[:, :place])
        assert (tokens[:, place:] != original[:, place:]).all()
        assert 0 <= tokens.min() <= tokens.max() < 50
        assert torch.equal(same_targets, targets)


def test_nan_is_no_clean_bill(windows):
    broken = Table(0)
    broken.logits[:] = float("nan")
    with pytest.raises(UsageError, match="finite losses"):
        causality_probe(broken, windows, vocab_size=50)


@pytest.mark.parametrize("shape", [(3, 2), (0, 9), (9,), (2, 3, 4)])
def test_windows_must_be_long_enough(shape):
    with pytest.raises(UsageError, match="windows of at least 3 tokens"):
        causality_probe(Table(0), torch.zeros(shape, dtype=torch.int64), vocab_size=50)

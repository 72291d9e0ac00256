import pytest
import torch
from safetensors.torch import load_file, save_file

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models import AttentionChoice
from robustbench_elliptical.models.language import (
    DecoderArchitecture,
    build_language_model,
    compact_state,
    load_language_weights,
)

TIED = "crit.out_layers.0.weight"


def fresh(vectors):
    return build_language_model(vectors.architecture, AttentionChoice(mechanism="softmax")).eval()


def test_a_compact_file_holds_the_words_once_and_comes_back(vectors, released_model, tmp_path):
    model = released_model("softmax")
    compact = compact_state(model)
    assert set(model.state_dict()) - set(compact) == {TIED}
    assert compact["pos_emb.inv_freq"].dtype == torch.float32
    assert compact["word_emb.emb_layers.0.weight"].dtype == torch.float16
    save_file(compact, tmp_path / "weights.safetensors")
    again = fresh(vectors)
    load_language_weights(again, load_file(tmp_path / "weights.safetensors"), "the file")
    for name, tensor in again.state_dict().items():
        expected = model.state_dict()[name]
        expected = expected if name == "pos_emb.inv_freq" else expected.half().float()
        assert torch.equal(tensor, expected)
    assert again.crit.projection.weight is again.word_emb.weight
    losses = again.token_losses(vectors.tokens, vectors.targets)
    assert (losses - vectors.losses["softmax"]).abs().max() < 1e-2


def test_untied_weights_are_refused_and_change_nothing(vectors):
    state = load_file(vectors.folder / "state_dict.safetensors")
    state[TIED] = state[TIED] + 1
    model = fresh(vectors)
    before = model.word_emb.weight.clone()
    with pytest.raises(UsageError, match=r"file: crit\.out_layers\.0\.weight must equal word_emb"):
        load_language_weights(model, state, "the file")
    assert torch.equal(model.word_emb.weight, before)


def test_missing_words_are_named(vectors):
    state = load_file(vectors.folder / "state_dict.safetensors")
    del state["word_emb.emb_layers.0.weight"]
    with pytest.raises(UsageError, match=r"1 missing \(word_emb.emb_layers.0.weight\)"):
        load_language_weights(fresh(vectors), state, "the file")


def test_word_vectors_that_are_not_numbers_are_called_that():
    architecture = DecoderArchitecture(
        vocab_size=7, layers=1, d_model=4, num_heads=1, d_head=4, d_inner=4, context_length=4
    )
    model = build_language_model(architecture, AttentionChoice(mechanism="softmax"))
    state = {name: torch.full_like(each, torch.nan) for name, each in compact_state(model).items()}
    with pytest.raises(UsageError, match="must be finite, but holds NaN or infinity"):
        load_language_weights(model, state, "checkpoint x")

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robustbench_elliptical.attacks.text import (
    NonFiniteLossError,
    adversarial_swap,
    parse_text_attack,
    word_swap_tokens,
)
from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.data.text import EOS, UNK, Vocabulary
from robustbench_elliptical.models.language.decoder import LanguageModel

OBJECTIVES = ["all-targets", "clean-targets"]
WORDS = [EOS, UNK, ",", "AAA", *"abcdefgh"]
LEXICON = Vocabulary(WORDS, list(range(len(WORDS), 0, -1)))
SWAPPABLE = set(range(3, len(WORDS)))
DOCUMENT = np.array([4, 5, 2, 7, 11, 4, 1, 9, 3, 0])


class ModelOracle:
    """A language model's losses, the document standing after a line end; counts."""

    def __init__(self, model):
        self.model = model
        self.calls = []

    @property
    def word_vectors(self):
        return self.model.word_vectors.detach().numpy()

    def losses(self, tokens):
        self.calls.append("losses")
        return self._run(self._vectors(tokens), tokens).numpy()

    def gradient(self, tokens, weights):
        self.calls.append("gradient")
        vectors = self._vectors(tokens).requires_grad_()
        losses = self._run(vectors, tokens)
        (gradient,) = torch.autograd.grad((losses * torch.as_tensor(weights)).sum(), vectors)
        return losses.detach().numpy(), np.vstack([gradient[0, 1:], 0 * gradient[0, :1]])

    def target_log_probabilities(self, tokens, positions):
        self.calls.append("prices")
        hidden = self.model.forward_embeddings(self._vectors(tokens))
        answer = self.model.log_probabilities(hidden[0, torch.as_tensor(positions)])
        return answer.detach().numpy()

    def _vectors(self, tokens):
        inputs = np.concatenate([[0], tokens[:-1]])
        return self.model.embed(torch.as_tensor(inputs)[None]).detach()

    def _run(self, vectors, tokens):
        with torch.set_grad_enabled(vectors.requires_grad):
            hidden = self.model.forward_embeddings(vectors)
            return self.model.hidden_losses(hidden, torch.as_tensor(tokens)[None])[0]


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = LanguageModel(
            "softmax",
            {},
            vocab_size=len(WORDS),
            layers=2,
            d_model=8,
            num_heads=2,
            d_head=4,
            d_inner=16,
            context_length=16,
        ).double()
        for parameter in model.parameters():  # Far from the near-uniform model of a fresh start.
            parameter.data += 0.3 * torch.randn_like(parameter)
    return model.eval()


def value(oracle, tokens, document, objective):
    losses = oracle.losses(tokens)
    return losses.mean() if objective == "all-targets" else losses[tokens == document].mean()


def single_swaps(document):
    for place in np.flatnonzero([token in SWAPPABLE for token in document]):
        for word in sorted(SWAPPABLE - {document[place]}):
            text = document.copy()
            text[place] = word
            yield text


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(3))
def test_one_swap_with_every_candidate_tried_is_the_best_one(model, objective, seed):
    rng = np.random.default_rng(seed)
    document = DOCUMENT.copy()
    document[[0, 1, 3]] = rng.integers(4, 12, size=3)
    oracle = ModelOracle(model)
    found = adversarial_swap(
        document,
        1 / 7,
        "d",
        LEXICON,
        oracle,
        objective=objective,
        budget=1000,
        candidates=len(WORDS),
    )
    texts = [document, *single_swaps(document)]
    best = max(value(oracle, each, document, objective) for each in texts)
    assert found.swapped.sum() <= 1
    assert value(oracle, found.tokens, document, objective) == pytest.approx(best, abs=1e-12)
    assert len(oracle.calls) < 900  # It stops once no change is left to try.


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=14),
    st.floats(0, 1),
    st.sampled_from(OBJECTIVES),
    st.integers(4, 30),
    st.integers(0, 3),
)
def test_never_weaker_than_a_control_in_the_ball_and_within_budget(
    model, words, rate, objective, budget, seed
):
    document = np.array(words)
    eligible = np.array([word in SWAPPABLE for word in words])
    limit = int(np.floor(rate * eligible.sum() + 0.5))
    small = adversarial_swap(
        document, rate / 2, "d", LEXICON, ModelOracle(model), objective=objective, budget=8
    )
    oracle = ModelOracle(model)
    found = adversarial_swap(
        document,
        rate,
        "d",
        LEXICON,
        oracle,
        small.tokens,
        objective=objective,
        budget=budget,
        seed=seed,
    )
    assert len(oracle.calls) <= budget
    assert (len(oracle.calls) == 0) == (limit == 0)
    assert np.array_equal(found.swapped, found.tokens != document)
    assert np.array_equal(found.eligible, eligible)
    assert np.array_equal(found.line_ends, document == 0)
    assert found.tokens.dtype == np.int64
    assert found.swapped.sum() <= limit
    assert not (found.swapped & ~eligible).any()
    assert set(found.tokens[found.swapped]) <= SWAPPABLE
    strength = value(oracle, found.tokens, document, objective)
    controls = [
        word_swap_tokens(document, rate, "d", LEXICON, replacement=each, seed=seed).tokens
        for each in ("random-word", "AAA")
    ]
    for control in [document, small.tokens, *controls]:
        if objective == "all-targets" or (control == document).any():  # Else no mean to compare.
            assert strength >= value(oracle, control, document, objective) - 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_much_stronger_than_random(model, objective):
    rng = np.random.default_rng(5)
    rises = []
    for number in range(3):
        document = rng.choice(len(WORDS), size=200)
        oracle = ModelOracle(model)
        found = adversarial_swap(document, 0.05, str(number), LEXICON, oracle, objective=objective)
        assert len(oracle.calls) <= 24
        control = word_swap_tokens(
            document, 0.05, str(number), LEXICON, replacement="random-word"
        ).tokens
        clean = oracle.losses(document).mean()
        rises.append(
            [value(oracle, t, document, objective) - clean for t in (found.tokens, control)]
        )
    attack, random = np.mean(rises, axis=0)
    assert attack > 0
    assert attack > 2 * random


def test_what_is_returned_depends_on_the_arguments_alone(model):
    results = [
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, ModelOracle(model), budget=12, seed=1).tokens
        for _ in range(2)
    ]
    assert np.array_equal(*results)


def test_a_start_is_kept_where_the_budget_ends_with_the_controls(model):
    strong = adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, ModelOracle(model), budget=60).tokens
    oracle = ModelOracle(model)
    found = adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, strong, budget=4)
    assert np.array_equal(found.tokens, strong)
    assert oracle.calls == ["losses", "losses", "losses", "gradient"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_with_the_least_budget_the_strongest_control_is_returned(model, objective):
    strongest = set()
    for seed in range(12):
        texts = [DOCUMENT] + [
            word_swap_tokens(DOCUMENT, 0.5, "d", LEXICON, replacement=each, seed=seed).tokens
            for each in ("random-word", "AAA")
        ]
        values = [value(ModelOracle(model), each, DOCUMENT, objective) for each in texts]
        found = adversarial_swap(
            DOCUMENT,
            0.5,
            "d",
            LEXICON,
            ModelOracle(model),
            objective=objective,
            budget=3,
            seed=seed,
        )
        assert np.array_equal(found.tokens, texts[np.argmax(values)])
        strongest.add(int(np.argmax(values)))
    assert len(strongest) > 1


def test_without_an_eligible_word_the_model_is_not_asked():
    for document, rate in ((np.array([0, 1, 2]), 1), (DOCUMENT, 0), (DOCUMENT[:0], 1)):
        found = adversarial_swap(document, rate, "d", LEXICON, None, budget=1)
        assert np.array_equal(found.tokens, document)
        assert not found.swapped.any()


def test_without_aaa_in_the_vocabulary_nothing_becomes_unk(model):
    words = [word if word != "AAA" else "B" for word in WORDS]
    lexicon = Vocabulary(words, list(range(len(words), 0, -1)))
    oracle = ModelOracle(model)
    found = adversarial_swap(DOCUMENT, 1, "d", lexicon, oracle, budget=2)
    assert oracle.calls == ["gradient", "losses"]
    assert set(found.tokens[found.swapped]) <= SWAPPABLE


@pytest.mark.parametrize("method", ["losses", "gradient", "target_log_probabilities"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_answers_with_nan_is_named(model, monkeypatch, method, bad):
    real = getattr(ModelOracle, method)

    def broken(self, *arguments):
        answer = real(self, *arguments)
        (answer[1] if method == "gradient" else answer)[0] = bad
        return answer

    monkeypatch.setattr(ModelOracle, method, broken)
    with pytest.raises(NonFiniteLossError, match=r"must be finite to attack a document, got NaN"):
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, ModelOracle(model))


def test_bad_arguments_are_refused(model):
    oracle = ModelOracle(model)
    with pytest.raises(UsageError, match=r"budget must be at least 3, .* got 2"):
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, budget=2)
    with pytest.raises(UsageError, match=r"budget must be at least 4, .* got 3"):
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, DOCUMENT, budget=3)
    with pytest.raises(UsageError, match=r"rate must be a number between 0 and 1.* got 1\.5"):
        adversarial_swap(DOCUMENT, 1.5, "d", LEXICON, oracle)
    with pytest.raises(UsageError, match="attack adversarial-swap: objective: input should be"):
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, objective="clean")
    with pytest.raises(UsageError, match="start must have the document's 10 tokens, got 9"):
        adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, DOCUMENT[:9])
    for place, word in ((2, 4), (0, 2), (0, 1)):
        start = DOCUMENT.copy()
        start[place] = word
        with pytest.raises(UsageError, match="start must swap words for words"):
            adversarial_swap(DOCUMENT, 0.5, "d", LEXICON, oracle, start)
    start = DOCUMENT.copy()
    start[:2] = 8
    with pytest.raises(UsageError, match="start must swap at most 1 words at this rate, got 2"):
        adversarial_swap(DOCUMENT, 1 / 7, "d", LEXICON, oracle, start)
    lonely = Vocabulary(WORDS, [5, 5, 5, 1, *[0] * 8])
    with pytest.raises(UsageError, match="counts of at least two words with a letter or digit"):
        adversarial_swap(DOCUMENT, 0.5, "d", lonely, oracle)
    assert oracle.calls == []


def test_a_choice_runs_it_on_tokens(model):
    choice = parse_text_attack("adversarial-swap:rate=0.5,budget=12,objective=clean-targets")
    assert choice.knowledge == "white-box"
    assert choice.label == "adversarial-swap(objective=clean-targets,budget=12)"
    direct = adversarial_swap(
        DOCUMENT,
        0.5,
        "d",
        LEXICON,
        ModelOracle(model),
        objective="clean-targets",
        budget=12,
        seed=3,
    )
    keywords = {"document_id": "d", "lexicon": LEXICON}
    oracle = ModelOracle(model)
    ran = choice.run_tokens(DOCUMENT, **keywords, oracle=oracle, seed=3)
    assert np.array_equal(ran.tokens, direct.tokens)
    with pytest.raises(UsageError, match=r"adversarial-swap needs the model, .* call run_tokens"):
        choice.run(["a"], **keywords)
    with pytest.raises(UsageError, match="attack word-swap asks no model and takes words"):
        parse_text_attack("word-swap:rate=0.5").run_tokens(DOCUMENT, **keywords, oracle=oracle)
    with pytest.raises(UsageError, match="attack adversarial-swap needs a rate"):
        parse_text_attack("adversarial-swap").run_tokens(DOCUMENT, **keywords, oracle=oracle)

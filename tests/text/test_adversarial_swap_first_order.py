import numpy as np
import pytest

from robustbench_elliptical.attacks.text import adversarial_swap
from robustbench_elliptical.attacks.text.ball import swap_ball
from robustbench_elliptical.attacks.text.first_order import best_words, context_change
from robustbench_elliptical.attacks.text.oracle import Queries
from robustbench_elliptical.attacks.text.ranking import Ranking
from robustbench_elliptical.attacks.text.search import Search
from robustbench_elliptical.data.text import EOS, UNK, Vocabulary

WORDS = [EOS, UNK, ",", "AAA", *"abcdefgh"]
LEXICON = Vocabulary(WORDS, list(range(len(WORDS), 0, -1)))
SWAPPABLE = set(range(3, len(WORDS)))
DOCUMENT = np.array([4, 5, 2, 7, 11, 4, 1, 9, 3, 0])


class LinearOracle:
    """Losses for which first order is exact: target prices plus linear effects of the words before.

    With all targets each swap raises their sum by an amount of its own, whatever the others.
    """

    def __init__(self, words, vocabulary, seed=0):
        rng = np.random.default_rng(seed)
        self.word_vectors = rng.normal(size=(vocabulary, 5))
        self.effects = np.tril(np.ones((words, words)), -1)[:, :, None] * rng.normal(
            size=(words, words, 5)
        )
        self.prices = rng.uniform(50, 60, size=(words, vocabulary))
        self.calls = []

    def losses(self, tokens):
        self.calls.append("losses")
        return self._losses(tokens)

    def gradient(self, tokens, weights):
        self.calls.append("gradient")
        return self._losses(tokens), np.einsum("i,ijd->jd", weights, self.effects)

    def target_log_probabilities(self, tokens, positions):
        self.calls.append("prices")
        context = self._losses(tokens) - self.prices[np.arange(len(tokens)), tokens]
        return -(self.prices + context[:, None])[positions]

    def _losses(self, tokens):
        own = self.prices[np.arange(len(tokens)), tokens]
        return own + np.einsum("ijd,jd->i", self.effects, self.word_vectors[tokens])


def single_swaps(document):
    for place in np.flatnonzero([token in SWAPPABLE for token in document]):
        for word in sorted(SWAPPABLE - {document[place]}):
            text = document.copy()
            text[place] = word
            yield text


def test_where_first_order_is_exact_so_is_the_attack():
    oracle = LinearOracle(len(DOCUMENT), len(WORDS))
    clean = oracle._losses(DOCUMENT).sum()
    gains = {}
    for text in single_swaps(DOCUMENT):
        (place,) = np.flatnonzero(text != DOCUMENT)
        gain = oracle._losses(text).sum() - clean
        gains[place] = max(gains.get(place, -np.inf), gain)
    best = sum(sorted(gains.values())[-3:])
    assert best > 3
    found = adversarial_swap(DOCUMENT, 3 / 7, "d", LEXICON, oracle, budget=5)
    assert oracle.calls == ["gradient", "losses", "losses", "prices", "losses"]
    assert oracle._losses(found.tokens).sum() - clean == pytest.approx(best)
    for budget in (9, 24):
        again = adversarial_swap(DOCUMENT, 3 / 7, "d", LEXICON, oracle, budget=budget)
        assert np.array_equal(again.tokens, found.tokens)


@pytest.mark.parametrize("priced", [False, True])
def test_best_words_are_those_of_the_full_table_in_any_chunks(priced):
    rng = np.random.default_rng(1)
    gradient, vectors = rng.normal(size=(7, 4)), rng.normal(size=(11, 4))
    current, allowed = rng.integers(0, 11, size=7), rng.random(11) < 0.7
    prices = rng.normal(size=(7, 11)) if priced else None
    table = {
        (row, word): gradient[row] @ (vectors[word] - vectors[current[row]])
        + (prices[row, word] if priced else 0)
        for row in range(7)
        for word in np.flatnonzero(allowed)
        if word != current[row]
    }
    for count in (1, 3, 99):
        best = {
            pair
            for row in range(7)
            for pair in sorted((p for p in table if p[0] == row), key=table.get)[-count:]
        }
        for most_scores in (1, 25, 1000):
            found = best_words(gradient, vectors, current, allowed, count, prices, most_scores)
            gains = dict(zip(zip(found.rows, found.words, strict=True), found.gains, strict=True))
            assert set(gains) == best
            assert all(gains[pair] == pytest.approx(table[pair]) for pair in best)


def test_the_change_of_a_context_is_exact_where_losses_are_linear():
    oracle = LinearOracle(len(DOCUMENT), len(WORDS))
    other = np.roll(DOCUMENT, 3)
    losses, gradient = oracle.gradient(DOCUMENT, np.ones(10))
    change = context_change(gradient, oracle.word_vectors, DOCUMENT, other)
    for place in range(10):
        text = DOCUMENT.copy()
        text[place] = other[place]
        target = oracle.prices[place, other[place]] - oracle.prices[place, DOCUMENT[place]]
        rise = oracle.losses(text).sum() - losses.sum() - target
        assert change[place] == pytest.approx(rise, abs=1e-9)


@pytest.mark.parametrize("objective", ["all-targets", "clean-targets"])
@pytest.mark.parametrize("place", [None, 4])
def test_gains_are_exact_where_losses_are_linear(objective, place):
    oracle = LinearOracle(len(DOCUMENT), len(WORDS))
    ball = swap_ball(DOCUMENT, 2 / 7, LEXICON)
    search = Search(ball=ball, queries=Queries(oracle, 99), objective=objective, candidates=99)
    text = DOCUMENT.copy()
    if place is not None:
        text[place] = 8
    clean, state = (search.visit(each, with_gradient=True) for each in (DOCUMENT, text))
    ranking = Ranking(ball, search.queries, objective, state, clean.losses, 10**6)
    moves = ranking.moves(1.0, 99)
    pairs = set(zip(moves.positions.tolist(), moves.words.tolist(), strict=True))
    assert len(pairs) == len(moves.gains) == 7 * 8
    for position, word, gain in zip(moves.positions, moves.words, moves.gains, strict=True):
        changed = text.copy()
        changed[position] = word
        counted = 10 if objective == "all-targets" else np.count_nonzero(changed == DOCUMENT)
        after = search.visit(changed, with_gradient=False)
        assert gain == pytest.approx((after.value - state.value) * counted, abs=1e-9)
    assert (np.diff(moves.gains) <= 0).all()


def test_no_more_log_probabilities_are_asked_for_than_memory_holds():
    oracle = LinearOracle(len(DOCUMENT), len(WORDS))
    sizes = []
    answer = oracle.target_log_probabilities
    oracle.target_log_probabilities = lambda tokens, positions: (
        sizes.append(len(positions)) or answer(tokens, positions)
    )
    ball = swap_ball(DOCUMENT, 3 / 7, LEXICON)
    search = Search(
        ball=ball,
        queries=Queries(oracle, 30),
        objective="all-targets",
        candidates=4,
        most_scores=3 * len(WORDS) + 1,
    )
    clean = search.visit(DOCUMENT, with_gradient=True)
    found = search.run(clean, clean, [])
    assert set(sizes) == {3}
    assert found.value > clean.value
    assert ball.swapped(found.tokens).sum() == 3

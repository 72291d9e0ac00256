"""Changes to one text of a ball, and which of them go together."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from robustbench_elliptical.attacks.text.ball import SwapBall
from robustbench_elliptical.attacks.text.oracle import Floats, Tokens

__all__ = ["Moves", "ordered_moves"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Moves:
    """Changes to a text, the most promising first; build them with `ordered_moves`."""

    ball: SwapBall
    tokens: Tokens
    """The text, shape (words,)."""
    positions: npt.NDArray[np.int64]
    """Where each change happens, shape (changes,)."""
    words: npt.NDArray[np.int64]
    """What it puts there, the document's own word included, shape (changes,)."""
    gains: Floats
    """By how much the objective should rise, shape (changes,)."""
    drops: npt.NDArray[np.int64]
    """Swapped positions, the one that costs least to restore first."""
    drop_gains: Floats
    """The gain of restoring each of them, shape (drops,)."""

    def block(self, start: int, size: int) -> Tokens | None:
        """Return the text after several changes at once; None if there is no change `start`.

        One change is made at a position. Where the ball has no room for one more swapped word, the
        cheapest one is restored. Change `start` is made whatever it promises, a further one only
        if it promises a rise.

        Parameters
        ----------
        start
            The first change to make.
        size
            How many to make at most.
        """
        if start >= len(self.positions):
            return None
        block = _Block(self)
        for index in range(start, len(self.positions)):
            if block.made == size or not block.add(index):
                break
        return block.tokens


class _Block:
    """A text while changes are made to it."""

    def __init__(self, moves: Moves) -> None:
        self.tokens = moves.tokens.copy()
        self.made = 0
        self._moves = moves
        self._own = moves.ball.tokens
        self._touched: set[int] = set()
        self._room = moves.ball.limit - int(np.count_nonzero(moves.ball.swapped(self.tokens)))
        self._next_drop = 0

    def add(self, index: int) -> bool:
        """Make a change, where one can still be made; False if it promises no rise."""
        position, word = int(self._moves.positions[index]), int(self._moves.words[index])
        if position in self._touched:
            return True
        own = int(self._own[position])
        needed = int(word != own) - int(self.tokens[position] != own)
        gain, drop = float(self._moves.gains[index]), None
        if needed > self._room:
            drop = self._cheapest_drop()
            if drop is None:
                return True
            gain += float(self._moves.drop_gains[drop])
        if self.made and gain <= 0:
            return False
        if drop is not None:
            self._put(int(self._moves.drops[drop]), None)
        self._put(position, word)
        self.made += 1
        return True

    def _cheapest_drop(self) -> int | None:
        """Return which of the drops is the first of an untouched position."""
        drops = self._moves.drops
        while self._next_drop < len(drops) and int(drops[self._next_drop]) in self._touched:
            self._next_drop += 1
        return self._next_drop if self._next_drop < len(drops) else None

    def _put(self, position: int, word: int | None) -> None:
        """Write a word, None: the document's own."""
        own = int(self._own[position])
        self._room += int(self.tokens[position] != own)
        self.tokens[position] = own if word is None else word
        self._room -= int(self.tokens[position] != own)
        self._touched.add(position)


def ordered_moves(
    ball: SwapBall,
    tokens: Tokens,
    replacements: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats],
    restored: tuple[npt.NDArray[np.int64], Floats],
) -> Moves:
    """Order the changes to a text.

    Parameters
    ----------
    ball
        Where the text must stay.
    tokens
        The text, shape (words,).
    replacements
        Positions, words and gains of the replacements, each of shape (replacements,).
    restored
        The swapped positions and the gain of restoring each, each of shape (swapped,).
    """
    swapped = ball.swapped(tokens)
    order = np.argsort(-restored[1], kind="stable")
    drops, drop_gains = restored[0][order], restored[1][order]
    positions = np.concatenate([replacements[0], drops])
    words = np.concatenate([replacements[1], ball.tokens[drops]])
    gains = np.concatenate([replacements[2], drop_gains])
    promise = gains.copy()
    if np.count_nonzero(swapped) == ball.limit:
        promise[~swapped[positions]] += drop_gains[0]
    order = np.lexsort((words, positions, -promise))
    return Moves(
        ball=ball,
        tokens=tokens,
        positions=positions[order],
        words=words[order],
        gains=gains[order],
        drops=drops,
        drop_gains=drop_gains,
    )

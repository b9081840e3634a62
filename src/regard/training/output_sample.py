"""Which tokens a batch's softmax is over, where it need not be over all of them.

The output layer of a small model costs as much as all its other layers, and nearly all of its V tokens are such as
hardly anyone would say. Here the batch's own targets and the commonest tokens are certain to be in the softmax, and of
all others some are drawn anew for each batch. Each of these stands for as many as were left out for it, so that for C
certain and D drawn ones

    Σ_certain e^logit + (V - C) / D · Σ_drawn e^logit

takes the place of the sum over all tokens, which is its expected value (Jean and others 2015 draw likewise).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.store import Store

_Array = NDArray[Any]

_DRAWN = 4  # one of so many is drawn, the others are certain


class OutputSample(NamedTuple):
    """Tokens (N,), of which those from `certain` on were drawn, and how many each of these stands for."""

    tokens: NDArray[np.int64]
    certain: int
    stands_for: float

    def find(self, tokens: _Array) -> NDArray[np.int64]:
        """Return where in the sample tokens are that are certain to be there."""
        order = np.argsort(self.tokens, kind="stable")
        return order[np.searchsorted(self.tokens[order], tokens)]

    def counts(self) -> NDArray[np.float32]:
        """Return (N,): how many tokens each stands for."""
        counts = np.ones(len(self.tokens), np.float32)
        counts[self.certain :] = self.stands_for
        return counts


class OutputSampler:
    """Draws samples."""

    def __init__(self, counts: _Array, size: int) -> None:
        """Draw `size` tokens, or more if a batch has more targets; `counts` (V,): how often each token is a target."""
        self._by_count = np.argsort(-counts, kind="stable")
        self._drawn = max(1, size // _DRAWN)
        self._certain = size - self._drawn

    def draw(self, targets: _Array, seed: int) -> OutputSample | None:
        """Return a sample that has all of the targets, however they are laid out; None if all tokens would be in it."""
        is_target = np.zeros(len(self._by_count), bool)
        is_target[targets] = True
        wanted, others = np.flatnonzero(is_target), self._by_count[~is_target[self._by_count]]
        more = max(0, self._certain - len(wanted))
        left = len(others) - more
        if left <= self._drawn:
            return None
        drawn = np.random.default_rng(seed).choice(others[more:], self._drawn, replace=False, shuffle=False)
        return OutputSample(np.concatenate([wanted, others[:more], drawn]), len(wanted) + more, left / self._drawn)


def make_sampler(store: Store, vocabulary_size: int, size: int) -> OutputSampler | None:
    """Return what draws samples of `size` tokens for the pairs of a store; None if that is 0: all tokens are wanted."""
    return OutputSampler(store.count_targets(vocabulary_size), size) if size else None

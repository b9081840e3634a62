"""Several models that search as one: the mean of their probabilities.

Shapes: B sentences, K hypotheses a sentence, M models.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from regard.search.predictor import Array, Likeliest, Predictor

_MORE = 8  # tokens that each model is asked for beyond those that are wanted

State = tuple[Any, ...]


class Ensemble:
    """A `Predictor` of models with one vocabulary; M = 1 is the model alone."""

    def __init__(self, members: Sequence[Predictor[Any]]) -> None:
        self._members = tuple(members)

    def begin(self, src: Tensor) -> State:
        """Read the source (B, S) with all of them; return their states."""
        return tuple(member.begin(src) for member in self._members)

    def predict(self, state: State, newest: Array, at_limit: Array, count: int) -> tuple[Likeliest, State]:
        """Read the newest token (B, K) of each hypothesis; return the `count` likeliest next ones; see `Predictor`.

        A token that is not among the likeliest of a model counts as impossible there.
        """
        asked = count if len(self._members) == 1 else count + _MORE
        found, states = zip(
            *(member.predict(one, newest, at_limit, asked) for member, one in zip(self._members, state, strict=True)),
            strict=True,
        )
        return mean_of(found, count), states

    def select(self, state: State, parents: Array) -> State:
        """Return the state of hypotheses (B', K') that continue the rows `parents` of the old B·K."""
        return tuple(member.select(one, parents) for member, one in zip(self._members, state, strict=True))


def mean_of(found: Sequence[Likeliest], count: int) -> Likeliest:
    """Return the `count` tokens with the largest mean probabilities, best first; ties go to the smaller token."""
    if len(found) == 1:
        return Likeliest(*(array[..., :count] for array in found[0]))
    tokens = np.concatenate([one.tokens for one in found], axis=-1)  # (B, K, M · asked)
    shares = np.exp(np.concatenate([one.log_probabilities for one in found], axis=-1)) / len(found)
    order = tokens.argsort(axis=-1, kind="stable")
    tokens, shares = (np.take_along_axis(array, order, axis=-1) for array in (tokens, shares))
    is_first = np.ones(tokens.shape, bool)  # of its token, which may stand there several times
    is_first[..., 1:] = tokens[..., 1:] != tokens[..., :-1]
    sums = np.full(tokens.shape, np.float32(0))
    sums[is_first] = np.add.reduceat(shares.ravel(), np.flatnonzero(is_first))
    if np.isnan(shares).any():  # which sorting would lose
        sums.fill(np.nan)
    best = (-sums).argsort(axis=-1, kind="stable")[..., :count]
    with np.errstate(divide="ignore"):  # the logarithm of none is -inf
        scores = np.log(np.take_along_axis(sums, best, axis=-1))
    return Likeliest(scores.astype(np.float32, copy=False), np.take_along_axis(tokens, best, axis=-1))

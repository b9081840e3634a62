"""What a search asks: the likeliest tokens after each hypothesis. What comes back is numpy's, wherever the model is.

Shapes: B sentences, K hypotheses a sentence, S source length, V vocabulary.
"""

from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.model.protocol import StateType, TranslationModel
from regard.search.hypothesis import rule_out
from regard.search.top import top

Array = NDArray[Any]
SearchState = TypeVar("SearchState")


class Likeliest(NamedTuple):
    """The likeliest tokens after each hypothesis, best first: (B, K, count) each. One NaN means a model that fails."""

    log_probabilities: Array
    tokens: Array


@runtime_checkable
class Predictor(Protocol[SearchState]):
    """Something that predicts how hypotheses go on."""

    def begin(self, src: Tensor) -> SearchState:
        """Read the source (B, S); return the state before the first token, with one hypothesis a sentence."""
        ...

    def predict(self, state: SearchState, newest: Array, at_limit: Array, count: int) -> tuple[Likeliest, SearchState]:
        """Read the newest token (B, K) of each hypothesis; return the `count` likeliest next ones.

        Tokens that are not text never come next; where `at_limit` (B,) says so, only the end does.
        """
        ...

    def select(self, state: SearchState, parents: Array) -> SearchState:
        """Return the state of hypotheses (B', K') that continue the rows `parents` of the old B·K."""
        ...


class Stepwise(Generic[StateType]):
    """The predictor that asks a model for the log-probabilities of all tokens and takes the best."""

    def __init__(self, model: TranslationModel[StateType], device: torch.device) -> None:
        self._model, self._device = model, device

    def begin(self, src: Tensor) -> StateType:
        """Read the source (B, S)."""
        return self._model.start(self._model.encode(src))

    def predict(self, state: StateType, newest: Array, at_limit: Array, count: int) -> tuple[Likeliest, StateType]:
        """Return the `count` likeliest next tokens of each hypothesis; see `Predictor`."""
        scores, state = self._model.step(state, self._tensor(newest))  # (B, K, V)
        batch, beams, vocabulary = rule_out(scores, self._tensor(at_limit)).shape
        best, tokens = top(scores.view(batch * beams, vocabulary), min(count, vocabulary))
        shape = batch, beams, -1
        return Likeliest(best.view(shape).cpu().numpy(), tokens.view(shape).cpu().numpy()), state

    def select(self, state: StateType, parents: Array) -> StateType:
        """Return the state of hypotheses that continue others; see `Predictor`."""
        return state.select(self._tensor(parents))

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def predictor_of(model: TranslationModel[Any] | Predictor[Any], device: torch.device) -> Predictor[Any]:
    """Return a model that predicts by itself as it is, and any other as one that does."""
    return model if isinstance(model, Predictor) else Stepwise(model, device)

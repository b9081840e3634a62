"""A hypothesis: a target sentence that a search has found, with what the model thinks of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.tokens import END, PAD, START, UNKNOWN

NEVER = (PAD, UNKNOWN, START)  # tokens that no translation contains


class NotANumberError(RegardError, RuntimeError):
    """A model whose probabilities are not numbers: there is nothing to search in."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A complete target sentence; all scores are log-probabilities, higher is better."""

    tokens: tuple[int, ...]  # ends in the end token
    token_scores: tuple[float, ...]  # of each token, the end token included
    score: float  # the sum divided by the length penalty: what hypotheses are ranked by

    @property
    def log_probability(self) -> float:
        """The sum of the token scores, log P(target | source)."""
        return sum(self.token_scores)

    def renumbered(self, rows: Sequence[int]) -> "Hypothesis":
        """Return this hypothesis with the ids that its tokens' numbers stand for, after a search among some `rows`."""
        return replace(self, tokens=tuple(rows[token] for token in self.tokens))


def length_penalty(length: int, alpha: float) -> float:
    """Return lp(Y) = ((5 + |Y|) / 6)^α (§6.1), the end token counted."""
    return float(((5 + length) / 6) ** alpha)


def make_hypothesis(tokens: list[int], token_scores: list[float], alpha: float) -> Hypothesis:
    """Rank a finished sentence."""
    return Hypothesis(tuple(tokens), tuple(token_scores), sum(token_scores) / length_penalty(len(tokens), alpha))


def check_numbers(best: NDArray[Any]) -> None:
    """Raise `NotANumberError` if one of the best scores of a step is NaN; one NaN makes a whole distribution NaN."""
    if np.isnan(best).any():
        raise NotANumberError(
            "the model's probabilities are not numbers; its weights are damaged, or its precision is too low"
        )


def rule_out(scores: Tensor, at_limit: Tensor) -> Tensor:
    """Set to -inf, in place, what may not come next: tokens that are not text, and all but the end at the limit.

    `scores` is (B, K, V), `at_limit` (B,) says for which sentences this is the last token there is room for.
    """
    scores[:, :, list(NEVER)] = float("-inf")
    if bool(at_limit.any()):
        end = scores[at_limit, :, END].clone()
        scores[at_limit] = float("-inf")
        scores[at_limit, :, END] = end
    return scores

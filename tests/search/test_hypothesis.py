"""A hypothesis: the length penalty by hand, and what may not come next."""

import math

import pytest
import torch
from toy import VOCABULARY, ToyModel, toy_batch

from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.search.hypothesis import NEVER, NotANumberError, length_penalty, make_hypothesis, rule_out
from regard.search.sample import sample
from regard.tokens import END, PAD, START, UNKNOWN


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [(1, 0.6, 1.0), (7, 0.6, 2**0.6), (13, 1.0, 3.0), (13, 0.0, 1.0), (25, 0.5, math.sqrt(5))],
)
def test_the_length_penalty_is_the_papers(length, alpha, expected):
    assert length_penalty(length, alpha) == pytest.approx(expected)


def test_a_score_is_the_log_probability_over_the_length_penalty():
    one = make_hypothesis([5, 6, END], [-1.0, -2.0, -0.5], alpha=0.6)
    assert one.tokens == (5, 6, END)
    assert one.token_scores == (-1.0, -2.0, -0.5)
    assert one.log_probability == -3.5
    assert one.score == pytest.approx(-3.5 / (8 / 6) ** 0.6)


def test_what_is_not_text_is_ruled_out_and_the_rest_keeps_its_score():
    scores = torch.randn(2, 3, 8)
    before = scores.clone()
    after = rule_out(scores, torch.tensor([False, False]))
    assert set(NEVER) == {PAD, UNKNOWN, START}
    assert torch.isneginf(after[:, :, list(NEVER)]).all()
    assert torch.equal(after[:, :, END:], before[:, :, END:])


def test_at_the_limit_only_the_end_is_left_with_its_honest_score():
    scores = torch.randn(3, 2, 8)
    before = scores.clone()
    after = rule_out(scores, torch.tensor([True, False, True]))
    for row in (0, 2):
        assert torch.equal(after[row, :, END], before[row, :, END])
        assert torch.isneginf(after[row, :, END + 1 :]).all()
    assert torch.equal(after[1, :, END:], before[1, :, END:])


class Damaged(ToyModel):
    """A model that is fine at the first step, and then gives what is no number for sentence 1."""

    def _log_probabilities(self, sentence, prefix):
        if sentence == 1 and len(prefix) > 1:
            return [math.nan] * VOCABULARY
        return super()._log_probabilities(sentence, prefix)


@pytest.mark.parametrize(
    "search",
    [
        lambda model, src, limits: beam_search(model, src, limits, beam=3, alpha=0.6),
        greedy_search,
        lambda model, src, limits: sample(model, src, limits, seeds=range(len(src))),
    ],
    ids=["beam", "greedy", "sampling"],
)
def test_probabilities_that_are_no_numbers_are_an_error_and_not_a_translation(search):
    toy, limits = Damaged(0, end_bonus=-9.0), torch.tensor([5, 5])
    with pytest.raises(NotANumberError, match="not numbers"):
        search(toy, toy_batch(2), limits)
    assert search(toy, toy_batch(1), limits[:1])

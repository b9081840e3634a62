"""A hypothesis: the length penalty by hand, and what may not come next."""

import math

import pytest
import torch

from regard.search.hypothesis import NEVER, length_penalty, make_hypothesis, rule_out
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

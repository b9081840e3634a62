"""The log-probability of given targets."""

import pytest
import torch
from torch.nn import functional as F

from regard.search.scoring import score_targets
from regard.tokens import END, PAD, START


def with_start(tgt):
    return F.pad(tgt, (1, 0), value=START)


def test_each_token_but_the_start_and_padding_has_a_score(tiny_model, random_source):
    src, tgt = random_source([5, 3]), random_source([4, 6], seed=1)
    scores = score_targets(tiny_model(), src, with_start(tgt))
    assert [len(row) for row in scores] == [4, 6]
    assert all(score < 0 for row in scores for score in row)


def test_scores_are_those_of_the_steps(tiny_model, random_source):
    model, src, tgt = tiny_model(), random_source([5, 3]), random_source([6, 6], seed=1)
    state = model.start(model.encode(src))
    newest, expected = torch.full((2, 1), START), []
    for position in range(6):
        log_probabilities, state = model.step(state, newest)
        newest = tgt[:, position : position + 1]
        expected.append(log_probabilities[:, 0].gather(1, newest))
    scores = score_targets(model, src, with_start(tgt))
    torch.testing.assert_close(torch.tensor(scores), torch.cat(expected, dim=1), atol=1e-5, rtol=0)  # float32


def test_the_probabilities_of_all_targets_of_a_length_sum_to_one(tiny_model):
    model = tiny_model(vocabulary=6)
    every_pair = torch.cartesian_prod(torch.arange(1, 6), torch.arange(1, 6))  # PAD can't be asked for
    src = torch.tensor([[4, 5, END]]).expand(len(every_pair), -1)
    total = sum(torch.tensor(row).sum().exp().item() for row in score_targets(model, src, with_start(every_pair)))
    # What is missing is what the model gives to padding at either place.
    first = model.step(model.start(model.encode(src[:1])), torch.full((1, 1), START))[0].exp()[0, 0]
    missing = first[PAD].item()
    for token in range(1, 6):
        _, state = model.step(model.start(model.encode(src[:1])), torch.full((1, 1), START))
        missing += first[token].item() * model.step(state, torch.full((1, 1), token))[0].exp()[0, 0, PAD].item()
    assert total + missing == pytest.approx(1, abs=1e-5)


def test_company_and_padding_do_not_change_a_score(tiny_model, random_source):
    model = tiny_model()
    src, tgt = random_source([9, 2, 5]), random_source([3, 8, 1], seed=1)
    together = score_targets(model, src, with_start(tgt))
    for i, (source_length, target_length) in enumerate([(9, 3), (2, 8), (5, 1)]):
        (alone,) = score_targets(model, src[i : i + 1, :source_length], with_start(tgt[i : i + 1, :target_length]))
        assert alone == pytest.approx(together[i], abs=1e-5)  # float32

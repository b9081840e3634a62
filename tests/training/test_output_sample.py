"""The tokens of a softmax: all targets are there, and what is drawn stands for everything else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model.consistency import consistent_loss
from regard.model.loss import token_loss
from regard.training.output_sample import OutputSampler

COUNTS = np.arange(100)[::-1]  # token 0 is the commonest


@given(targets=st.lists(st.integers(0, 99), min_size=1, max_size=80), size=st.integers(1, 99), seed=st.integers(0, 99))
def test_a_sample_has_all_targets_no_token_twice_and_stands_for_the_whole_vocabulary(targets, size, seed):
    sample = OutputSampler(COUNTS, size).draw(np.array(targets), seed)
    if sample is None:
        return
    assert len(set(sample.tokens.tolist())) == len(sample.tokens) >= size
    assert sample.tokens[sample.find(np.array(targets))].tolist() == targets
    assert sample.find(np.array(targets)).max() < sample.certain
    assert sample.counts().sum() == pytest.approx(100)


def test_the_commonest_tokens_are_certain_and_the_rest_is_drawn_anew_with_each_seed():
    first, second = (OutputSampler(COUNTS, 20).draw(np.array([90]), seed) for seed in range(2))
    assert first is not None
    assert second is not None
    assert first.tokens[: first.certain].tolist() == second.tokens[: second.certain].tolist() == [90, *range(14)]
    assert set(first.tokens[first.certain :]) != set(second.tokens[second.certain :])
    assert len(first.tokens) == 20
    assert first.stands_for == pytest.approx(85 / 5)


def test_laid_out_with_padding_the_targets_are_the_same():
    sampler = OutputSampler(COUNTS, 20)
    flat, padded = (sampler.draw(targets, 0) for targets in (np.array([7, 50, 60]), np.array([[50, 60], [7, 7]])))
    assert flat is not None
    assert padded is not None
    assert flat.tokens.tolist() == padded.tokens.tolist()


def test_a_sample_that_would_be_everything_is_none():
    assert OutputSampler(COUNTS, 100).draw(np.array([1]), 0) is None
    assert OutputSampler(COUNTS, 40).draw(np.arange(95), 0) is None


def losses(kind, hidden, targets, weight, counts):
    if kind == "one pass":
        return token_loss(hidden, targets, weight, 0.1, counts)
    return consistent_loss(
        hidden.repeat(2, 1) * torch.tensor([1.0, 1.5]).repeat_interleave(5)[:, None], targets, weight, 0.1, 3.0, counts
    )


@pytest.mark.parametrize("kind", ["one pass", "two passes"])
def test_a_row_that_stands_for_three_is_three_rows(kind):
    """So loss and gradients are those of a vocabulary in which that row is there three times."""
    torch.manual_seed(0)
    counts = torch.tensor([1.0, 1, 1, 3, 3], dtype=torch.float64)
    repeats = counts.long()
    hidden = torch.randn(5, 8, dtype=torch.float64)
    rows = torch.randn(5, 8, dtype=torch.float64)
    targets = torch.tensor([0, 1, 2, 2, 1])
    found = []
    for weight, some in ((rows.clone(), counts), (rows.repeat_interleave(repeats, dim=0), None)):
        h, w = hidden.clone().requires_grad_(), weight.requires_grad_()
        loss = losses(kind, h, targets, w, some)
        loss.objective.backward()
        assert h.grad is not None
        assert w.grad is not None
        grad = w.grad
        if some is None:
            grad = torch.zeros_like(rows).index_add(0, torch.arange(5).repeat_interleave(repeats), grad)
        found.append([*(part.detach() for part in loss), h.grad, grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_expected_sum_of_powers_is_that_over_all_tokens():
    random = np.random.default_rng(0)
    logits = random.normal(size=100)
    sampler, sums = OutputSampler(COUNTS, 20), []
    for seed in range(2000):
        sample = sampler.draw(np.array([3]), seed)
        assert sample is not None
        sums.append((sample.counts() * np.exp(logits[sample.tokens])).sum())
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - np.exp(logits).sum()) < 4 * error  # a chance of 1 in 15,000, by a seed that is fixed

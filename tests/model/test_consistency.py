"""R-Drop's loss: the formula, its gradients against autograd, and memory that does not grow with the tokens."""

import math

import pytest
import torch
from counting import Allocations
from hypothesis import given
from hypothesis import strategies as st
from test_loss import EXACT, problem, torchs_loss
from torch.nn import functional as F

from regard.model import loss
from regard.model.consistency import consistent_loss
from regard.model.loss import token_loss


def two_passes(tokens, vocabulary, width=6, seed=0, dtype=torch.float64):
    """Hidden states of two passes, one after the other, with the targets of one."""
    hidden, targets, weight = problem(2 * tokens, vocabulary, width, seed, dtype)
    return hidden, targets[:tokens], weight


def naive_loss(hidden, targets, weight, smoothing, alpha):
    """The formula as Liang and others write it, halved, by autograd."""
    one, other = (half @ weight.T for half in hidden.chunk(2))
    log_p, log_r = one.log_softmax(1), other.log_softmax(1)
    divergence = F.kl_div(log_r, log_p, log_target=True, reduction="sum")  # KL(p‖r)
    divergence = divergence + F.kl_div(log_p, log_r, log_target=True, reduction="sum")
    return torchs_loss(hidden, targets.repeat(2), weight, smoothing) / 2 + alpha / 4 * divergence


def test_the_formula_worked_out_by_hand():
    # Two tokens: p = (1/2, 1/2), r = (1/4, 3/4), the second is right; no smoothing, α = 4.
    weight = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    hidden = torch.tensor([[0.0], [math.log(3)]], dtype=torch.float64)
    result = consistent_loss(hidden, torch.tensor([1]), weight, smoothing=0.0, alpha=4.0)
    plain = (math.log(2) + math.log(4 / 3)) / 2
    to_r = (math.log(2) + math.log(2 / 3)) / 2
    to_p = math.log(1 / 2) / 4 + 3 * math.log(3 / 2) / 4
    assert result.plain.item() == pytest.approx(plain, abs=EXACT)
    assert result.smoothed.item() == pytest.approx(plain, abs=EXACT)
    assert result.objective.item() == pytest.approx(plain + to_r + to_p, abs=EXACT)


@given(
    tokens=st.integers(0, 20),
    vocabulary=st.integers(1, 15),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    alpha=st.sampled_from([0.0, 1.0, 5.0]),
    chunk=st.sampled_from([1, 16, 37, 1 << 22]),
    seed=st.integers(0, 10**6),
)
def test_loss_and_gradients_are_autograds_whatever_the_chunk(tokens, vocabulary, smoothing, alpha, chunk, seed):
    hidden, targets, weight = two_passes(tokens, vocabulary, seed=seed)
    expected = naive_loss(hidden, targets, weight, smoothing, alpha)
    gradients = torch.autograd.grad(3 * expected, [hidden, weight])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "_LOGITS", chunk)
        result = consistent_loss(hidden, targets, weight, smoothing, alpha)

    torch.testing.assert_close(result.objective, expected, atol=EXACT, rtol=EXACT)
    for ours, torchs in zip(torch.autograd.grad(3 * result.objective, [hidden, weight]), gradients, strict=True):
        torch.testing.assert_close(ours, torchs, atol=EXACT, rtol=EXACT)


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_two_passes_that_agree_have_the_usual_loss_and_its_gradients(alpha):
    hidden, targets, weight = problem(9, 7)
    usual = token_loss(hidden, targets, weight, 0.1)
    gradients = torch.autograd.grad(usual.objective, [hidden, weight])
    result = consistent_loss(hidden.repeat(2, 1), targets, weight, 0.1, alpha)
    for ours, other in zip(result, usual, strict=True):
        torch.testing.assert_close(ours, other, atol=EXACT, rtol=EXACT)
    for ours, other in zip(torch.autograd.grad(result.objective, [hidden, weight]), gradients, strict=True):
        torch.testing.assert_close(ours, other, atol=EXACT, rtol=EXACT)


def test_the_losses_that_are_reported_are_the_means_of_the_passes_without_the_divergence():
    hidden, targets, weight = two_passes(9, 7)
    result = consistent_loss(hidden, targets, weight, 0.1, 5.0)
    halves = [token_loss(half, targets, weight, 0.1) for half in hidden.chunk(2)]
    torch.testing.assert_close(result.smoothed, (halves[0].smoothed + halves[1].smoothed) / 2, atol=EXACT, rtol=EXACT)
    torch.testing.assert_close(result.plain, (halves[0].plain + halves[1].plain) / 2, atol=EXACT, rtol=EXACT)
    assert result.objective > result.smoothed
    assert result.objective.requires_grad
    assert not result.smoothed.requires_grad
    assert not result.plain.requires_grad


def test_single_precision_agrees_with_autograd_to_single_precision():
    hidden, targets, weight = two_passes(300, 1000, width=32, dtype=torch.float32)
    with torch.no_grad():
        hidden *= 0.2  # logits of size 2: of those with size 10 and more the divergence is that of rounding errors
    expected = naive_loss(hidden, targets, weight, 0.1, 5.0)
    gradients = torch.autograd.grad(expected, [hidden, weight])
    result = consistent_loss(hidden, targets, weight, 0.1, 5.0)
    assert result.objective.item() == pytest.approx(expected.item(), rel=1e-5)
    for ours, torchs in zip(torch.autograd.grad(result.objective, [hidden, weight]), gradients, strict=True):
        torch.testing.assert_close(ours, torchs, atol=1e-3, rtol=1e-3)  # sums of 300 to 1000 float32 terms of size 1
        assert ours.dtype == torch.float32


def test_a_second_backward_is_refused_and_not_wrong():
    hidden, targets, weight = two_passes(4, 5)
    objective = consistent_loss(hidden, targets, weight, 0.1, 5.0).objective
    objective.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        objective.backward()


def test_only_what_needs_a_gradient_gets_one():
    hidden, targets, weight = two_passes(5, 7)
    consistent_loss(hidden.detach(), targets, weight, 0.1, 5.0).objective.backward()
    assert weight.grad is not None
    assert hidden.grad is None


def test_the_logits_of_all_tokens_never_exist_at_once(monkeypatch):
    monkeypatch.setattr(loss, "_LOGITS", 10_000)
    hidden, targets, weight = two_passes(1_000, 100, width=4)
    with Allocations() as allocations:
        consistent_loss(hidden, targets, weight, 0.1, 5.0).objective.backward()
    assert allocations.largest == 10_000  # of 200,000

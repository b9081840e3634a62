"""The loss (§5.4): torch's own numbers and gradients, without torch's memory."""

import math

import pytest
import torch
from counting import Allocations
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from regard.model import loss
from regard.model.loss import token_loss

EXACT = 1e-10  # float64, sums of some hundred terms


def problem(tokens, vocabulary, width=6, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    hidden = (2 * torch.randn(tokens, width, generator=generator, dtype=dtype)).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=generator, dtype=dtype).requires_grad_()
    return hidden, torch.randint(0, vocabulary, (tokens,), generator=generator), weight


def torchs_loss(hidden, targets, weight, smoothing):
    return F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)


def test_label_smoothing_is_the_formula_worked_out_by_hand():
    # Three tokens with p = (1/2, 1/4, 1/4), the first is right, ε = 0.3: q = (0.8, 0.1, 0.1).
    weight = torch.tensor([[math.log(2)], [0.0], [0.0]], dtype=torch.float64)
    result = token_loss(torch.ones(1, 1, dtype=torch.float64), torch.tensor([0]), weight, smoothing=0.3)
    assert result.smoothed.item() == pytest.approx(0.8 * math.log(2) + 0.2 * math.log(4), abs=EXACT)
    assert result.plain.item() == pytest.approx(math.log(2), abs=EXACT)


@given(
    tokens=st.integers(0, 20),
    vocabulary=st.integers(1, 15),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    chunk=st.sampled_from([1, 16, 37, 1 << 22]),
    seed=st.integers(0, 10**6),
)
def test_loss_and_gradients_are_torchs_whatever_the_chunk(tokens, vocabulary, smoothing, chunk, seed):
    hidden, targets, weight = problem(tokens, vocabulary, seed=seed)
    expected = torchs_loss(hidden, targets, weight, smoothing)
    gradients = torch.autograd.grad(3 * expected, [hidden, weight])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "_LOGITS", chunk)
        result = token_loss(hidden, targets, weight, smoothing)

    torch.testing.assert_close(result.smoothed, expected, atol=EXACT, rtol=EXACT)
    torch.testing.assert_close(result.plain, torchs_loss(hidden, targets, weight, 0.0), atol=EXACT, rtol=EXACT)
    for ours, torchs in zip(torch.autograd.grad(3 * result.smoothed, [hidden, weight]), gradients, strict=True):
        torch.testing.assert_close(ours, torchs, atol=EXACT, rtol=EXACT)


def test_a_second_backward_is_refused_and_not_wrong():
    hidden, targets, weight = problem(4, 5)
    smoothed = token_loss(hidden, targets, weight, 0.1).smoothed
    smoothed.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        smoothed.backward()


def test_single_precision_agrees_with_torch_to_single_precision():
    hidden, targets, weight = problem(300, 1000, width=32, dtype=torch.float32)
    expected = torchs_loss(hidden, targets, weight, 0.1)
    gradients = torch.autograd.grad(expected, [hidden, weight])
    result = token_loss(hidden, targets, weight, 0.1)
    assert result.smoothed.item() == pytest.approx(expected.item(), rel=1e-6)
    for ours, torchs in zip(torch.autograd.grad(result.smoothed, [hidden, weight]), gradients, strict=True):
        torch.testing.assert_close(ours, torchs, atol=1e-4, rtol=1e-4)  # sums of 300 to 1000 float32 terms of size 1
        assert ours.dtype == torch.float32


def test_bfloat16_products_keep_the_softmax_and_the_sums_in_single_precision():
    hidden, targets, weight = problem(300, 1000, width=32, dtype=torch.float32)
    expected = token_loss(hidden, targets, weight, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        result = token_loss(hidden, targets, weight, 0.1)
    result.smoothed.backward()
    # bfloat16 has 8 bits: a logit of size 10 is off by up to 0.04, with either sign.
    assert result.smoothed.item() == pytest.approx(expected.smoothed.item(), rel=2e-3)
    assert hidden.grad.dtype == weight.grad.dtype == torch.float32


def test_only_what_needs_a_gradient_gets_one():
    hidden, targets, weight = problem(5, 7)
    result = token_loss(hidden.detach(), targets, weight, 0.1)
    result.smoothed.backward()
    assert weight.grad is not None
    assert hidden.grad is None
    assert not result.plain.requires_grad


def test_the_logits_of_all_tokens_never_exist_at_once(monkeypatch):
    monkeypatch.setattr(loss, "_LOGITS", 10_000)
    hidden, targets, weight = problem(2_000, 100, width=4)
    with Allocations() as allocations:
        token_loss(hidden, targets, weight, 0.1).smoothed.backward()
    assert allocations.largest == 10_000  # of 200,000


def test_validation_computes_no_gradients():
    hidden, targets, weight = problem(5, 50, width=4)
    with torch.no_grad(), Allocations() as allocations:
        token_loss(hidden, targets, weight, 0.1)
    assert weight.shape not in allocations.shapes

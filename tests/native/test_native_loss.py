"""The loss in the compiled library: the same numbers as in torch, and none that are silently wrong."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model import loss as reference
from regard.native import library
from regard.native.loss import _compute, add_losses

FOUND = library.find_library()
pytestmark = pytest.mark.skipif(FOUND is None, reason="no compiled library here")
KINDS = ["avx512", "avx2"] if FOUND is not None and FOUND.kind == "avx512" else ["avx2"]


def problem(tokens, vocabulary, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, width, generator=generator)
    weight = torch.randn(vocabulary, width, generator=generator) * 2 * width**-0.5
    return hidden, torch.randint(0, vocabulary, (tokens,), generator=generator), weight


def compute(kind, hidden, targets, weight, smoothing, chunk=288):
    gradients = torch.zeros_like(hidden), torch.zeros_like(weight)
    sums = _compute(library.library_of(kind), hidden, targets, weight, smoothing, gradients, chunk)
    return sums, *gradients


@pytest.mark.parametrize("kind", KINDS)
@given(
    tokens=st.integers(0, 70),
    vocabulary=st.sampled_from([1, 5, 239, 240, 241, 500]),
    width=st.sampled_from([32, 96]),
    smoothing=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10**6),
)
def test_losses_and_gradients_are_torchs(kind, tokens, vocabulary, width, smoothing, seed):
    hidden, targets, weight = problem(tokens, vocabulary, width, seed)
    targets[: min(tokens, 2)] = torch.tensor([vocabulary - 1, min(239, vocabulary - 1)])[: min(tokens, 2)]
    expected = torch.zeros_like(hidden, dtype=torch.float64), torch.zeros_like(weight, dtype=torch.float64)
    exact = hidden.double(), targets, weight.double()
    expected_sums = reference._add_losses(*exact, smoothing, None, expected, torch.float64)

    sums, *gradients = compute(kind, hidden, targets, weight, smoothing)

    torch.testing.assert_close(sums, expected_sums, rtol=1e-6, atol=1e-5)
    for ours, torchs in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours.double(), torchs, rtol=1e-5, atol=1e-5)  # float32 sums of terms of size 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_chunk_changes_no_bit_of_the_gradients(kind):
    arguments = problem(100, 300, 32)
    sums, *gradients = compute(kind, *arguments, 0.1)
    for chunk in (32, 64):
        other_sums, *others = compute(kind, *arguments, 0.1, chunk)
        torch.testing.assert_close(sums, other_sums, rtol=1e-14, atol=0)  # the same numbers in the same order
        assert all(torch.equal(ours, other) for ours, other in zip(gradients, others, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_seen_in_the_loss(kind, bad):
    hidden, targets, weight = problem(40, 300, 32)
    hidden[35, 3] = bad
    assert not compute(kind, hidden, targets, weight, 0.1)[0].isfinite().any()
    hidden, targets, weight = problem(40, 300, 32)
    weight[250, 3] = bad
    assert not compute(kind, hidden, targets, weight, 0.1)[0].isfinite().any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_no_token_is_no_number(kind):
    hidden, targets, weight = problem(3, 50, 32)
    targets[1] = 50
    assert compute(kind, hidden, targets, weight, 0.1)[0][0].isnan()


def test_only_what_is_wanted_is_computed_and_what_does_not_fit_is_left_to_torch():
    hidden, targets, weight = problem(300, 300, 32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        weight_grad = torch.zeros_like(weight)
        expected, _, expected_grad = compute(FOUND.kind, hidden, targets, weight, 0.1)
        torch.testing.assert_close(add_losses(hidden, targets, weight, 0.1, (None, None), 1 << 20), expected)
        add_losses(hidden, targets, weight, 0.1, (None, weight_grad), 1 << 20)
        assert torch.equal(weight_grad, expected_grad)
        assert add_losses(hidden, targets, weight, 0.1, (None, None), 300) is None  # no room for a panel
        assert add_losses(hidden[:, :20], targets, weight[:, :20], 0.1, (None, None), 1 << 20) is None
        assert add_losses(hidden[:40], targets[:40], weight, 0.1, (None, weight_grad), 1 << 20) is None  # too few
        assert add_losses(hidden.double(), targets, weight.double(), 0.1, (None, None), 1 << 20) is None
    finally:
        torch.set_num_threads(threads)

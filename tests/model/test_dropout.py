"""Dropout (§5.4): as often as asked, on average without effect, the same for the same seed."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model.dropout import Dropout, WordDropout, dropout_mask


@pytest.mark.parametrize("probability", [0.0001, 0.1, 0.3, 0.5, 0.9])
def test_elements_are_dropped_at_the_rate_asked_for(probability):
    torch.manual_seed(1)
    count = 1_000_000
    dropped = count - int(dropout_mask(torch.Size([count]), probability).count_nonzero())
    # Five standard deviations of the binomial, and the rounding of the rate to 1/65,536.
    allowed = 5 * math.sqrt(count * probability * (1 - probability)) + count / 2 / 65_536
    assert abs(dropped - count * probability) < allowed


def test_all_sixteen_bit_quarters_of_a_word_are_random_and_independent():
    torch.manual_seed(2)
    keep = (dropout_mask(torch.Size([4 * 100_000]), 0.5) > 0).view(-1, 4).double()
    together = torch.corrcoef(keep.T)
    torch.testing.assert_close(keep.mean(dim=0), torch.full((4,), 0.5, dtype=torch.float64), atol=0.01, rtol=0)
    # A correlation of 100,000 independent pairs has the standard deviation 0.003.
    torch.testing.assert_close(together, torch.eye(4, dtype=torch.float64), atol=0.016, rtol=0)


@given(st.lists(st.integers(0, 7), min_size=0, max_size=4), st.sampled_from([0.0, 0.3, 0.999_999_9]))
def test_a_mask_has_any_shape(shape, probability):
    mask = dropout_mask(torch.Size(shape), probability)
    assert mask.shape == torch.Size(shape)
    assert mask.dtype == torch.float32
    assert mask.all() or probability > 0


def test_a_probability_next_to_one_drops_nearly_everything():
    assert dropout_mask(torch.Size([10_000]), 0.999_999_999).count_nonzero() < 100


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(probability):
    torch.manual_seed(3)
    out = Dropout(probability)(torch.ones(1000, 1000))
    assert set(out.unique().tolist()) == {0.0, torch.tensor(1 / (1 - probability)).item()}
    # A standard deviation of the mean is √(p / (1 - p)) / 1000.
    assert out.mean().item() == pytest.approx(1, abs=5 * math.sqrt(probability / (1 - probability)) / 1000)


def test_the_gradient_is_the_same_mask_and_scale():
    torch.manual_seed(4)
    x = torch.randn(50, 7, requires_grad=True)
    out = Dropout(0.3)(x)
    weights = torch.randn_like(out)
    (out * weights).sum().backward()
    kept = out.detach() != 0
    assert 0 < kept.float().mean() < 1
    torch.testing.assert_close(x.grad, weights * kept / (1 - 0.3))
    torch.testing.assert_close(out, x * kept / (1 - 0.3))


def test_without_training_or_probability_it_is_the_identity():
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_the_same_seed_drops_the_same_elements():
    def draw(seed):
        torch.manual_seed(seed)
        return Dropout(0.5)(torch.ones(100))

    assert torch.equal(draw(5), draw(5))
    assert not torch.equal(draw(5), draw(6))


def test_half_precision_stays_half_precision():
    assert Dropout(0.5)(torch.ones(8, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_word_dropout_sets_whole_vectors_to_zero_and_leaves_the_rest_as_they_are():
    torch.manual_seed(7)
    x = torch.randn(100, 100, 5, requires_grad=True)
    out = WordDropout(0.2)(x)
    out.sum().backward()
    kept = (out != 0).all(dim=-1)
    assert torch.equal(out, x * kept[..., None])
    assert torch.equal(x.grad, kept[..., None].float().expand_as(x))
    assert kept.float().mean().item() == pytest.approx(0.8, abs=5 * math.sqrt(0.2 * 0.8 / 10_000))
    assert WordDropout(0.2).eval()(x) is x
    assert WordDropout(0.0)(x) is x

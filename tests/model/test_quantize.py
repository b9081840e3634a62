"""Products in eight bits: close to the exact ones, and each row's by itself."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.machine import int8_works
from regard.model.quantize import Int8Linear, Int8Output, Rounded, restore_rows, round_rows, use_int8_products
from regard.search.greedy import greedy_search

CLOSE = 0.02  # relative: 1/254 of a row's largest number is lost at each weight and each input


@pytest.fixture(autouse=True)
def _needs_fbgemm():
    if not int8_works():
        pytest.skip("fbgemm's products do not work on this machine")


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def relative_error(found, exact):
    return ((found - exact).norm() / exact.norm()).item()


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_rounding_loses_at_most_half_a_step_of_each_row(rows, width, seed, size):
    matrix = size * random(rows, width, seed=seed)
    rounded = round_rows(matrix)
    assert rounded.numbers.dtype == torch.int8
    assert (restore_rows(rounded) - matrix).abs().amax(dim=1).le(0.501 * rounded.scale).all()
    again = round_rows(restore_rows(rounded))
    assert torch.equal(again.numbers, rounded.numbers)  # so that a model on disk is the one that computes


def test_a_row_of_zeros_stays_zeros():
    rounded = round_rows(torch.zeros(2, 3))
    assert not restore_rows(rounded).any()
    assert restore_rows(Rounded(rounded.numbers, rounded.scale)).isfinite().all()


@pytest.mark.parametrize("bias", [False, True])
def test_a_product_is_close_to_the_exact_one(bias):
    weight, offset = random(70, 128), random(70, seed=2) if bias else None
    x = random(5, 6, 128, seed=3)
    exact = torch.nn.functional.linear(x, weight, offset)
    found = Int8Linear(weight, offset)(x)
    assert found.shape == exact.shape
    assert relative_error(found, exact) < CLOSE


def test_a_row_gives_the_same_numbers_whatever_is_beside_it():
    linear = Int8Linear(random(70, 128))
    x = random(6, 128, seed=4) * torch.tensor([1e-3, 1.0, 1e3, 1.0, 0.0, 7.0])[:, None]
    together = linear(x)
    assert torch.equal(together, torch.cat([linear(row[None]) for row in x]))
    assert not together[4].any()
    exact = x @ random(70, 128).t()
    assert all(relative_error(together[i], exact[i]) < CLOSE for i in (0, 1, 2, 3, 5))


def test_all_linear_maps_of_a_model_are_replaced_and_its_scores_stay_close(tiny_model, random_source):
    model, src = tiny_model().eval(), random_source([7, 3, 5])
    with torch.no_grad():
        exact, _ = model.step(model.start(model.encode(src)), torch.full((3, 1), 1))
        use_int8_products(model)
        found, _ = model.step(model.start(model.encode(src)), torch.full((3, 1), 1))
    assert isinstance(model.output, Int8Output)
    assert not any(isinstance(module, torch.nn.Linear) for module in model.modules())
    assert not torch.equal(exact, found)
    torch.testing.assert_close(found, exact, atol=0.2, rtol=0)  # log-probabilities


def test_a_sentence_alone_is_translated_as_in_a_batch(tiny_model, random_source):
    model, src = tiny_model().eval(), random_source([6, 6, 6, 6])
    use_int8_products(model)
    limits = torch.full((4,), 9)
    together = greedy_search(model, src, limits)
    assert [one.tokens for one in together] == [
        greedy_search(model, src[i : i + 1], limits[:1])[0].tokens for i in range(4)
    ]


def test_other_code_finds_torchs_engine_as_it_was():
    before = torch.backends.quantized.engine
    Int8Linear(random(4, 4))
    assert torch.backends.quantized.engine == before

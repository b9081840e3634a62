"""Seeds depend on all numbers they are made of."""

from hypothesis import given
from hypothesis import strategies as st

from regard.seeds import mix

numbers = st.lists(st.integers(0, 2**63), min_size=1, max_size=4)


@given(numbers)
def test_a_seed_is_a_function_of_its_numbers_and_fits_63_bits(given_numbers):
    assert mix(*given_numbers) == mix(*given_numbers)
    assert 0 <= mix(*given_numbers) < 2**63


def test_seeds_of_neighbouring_steps_and_pieces_all_differ_in_the_32_bits_that_torch_uses():
    seeds = {mix(seed, step, piece) % 2**32 for seed in range(3) for step in range(300) for piece in range(8)}
    # Of 7,200 draws from 2³² values, one collision is expected in 165 such tests.
    assert len(seeds) >= 3 * 300 * 8 - 1


def test_the_order_of_the_numbers_counts():
    assert len({mix(1, 2, 3), mix(3, 2, 1), mix(1, 3, 2), mix(1, 2), mix(1, 2, 3, 0)}) == 5

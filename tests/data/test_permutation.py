import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.permutation import permute

keys = st.tuples(st.integers(0, 2**70), st.integers(0, 1000))


@given(st.integers(0, 5000), keys)
def test_an_order_has_everything_once(size: int, key: tuple[int, int]) -> None:
    assert sorted(permute(np.arange(size), size, key).tolist()) == list(range(size))


@given(st.integers(1, 10**12), keys, st.lists(st.integers(0, 10**12), max_size=20))
def test_an_element_does_not_depend_on_which_others_are_asked_for(
    size: int, key: tuple[int, int], wanted: list[int]
) -> None:
    positions = np.array([position % size for position in wanted], dtype=np.int64)
    together = permute(positions, size, key)
    alone = [int(permute(positions[[number]], size, key)[0]) for number in range(len(positions))]
    assert together.tolist() == alone
    assert all(0 <= element < size for element in alone)


def test_the_key_names_the_order() -> None:
    first, again, other = (permute(np.arange(1000), 1000, key) for key in ((1, 2), (1, 2), (1, 3)))
    assert (first == again).all()
    assert (first == other).sum() < 10


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_every_place_is_about_equally_likely(size: int) -> None:
    trials = 3000
    orders = np.array([permute(np.arange(size), size, (seed,)) for seed in range(trials)])
    counts = np.array([(orders == element).sum(axis=0) for element in range(size)])
    # Five standard deviations of a binomial count.
    assert abs(counts - trials / size).max() < 5 * np.sqrt(trials / size)


def test_neighbours_are_torn_apart() -> None:
    order = permute(np.arange(100_000), 100_000, (5,))
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(order, np.arange(100_000))[0, 1]) < 0.02


def test_the_order_is_the_same_on_every_machine() -> None:
    assert permute(np.arange(8), 8, (1, 2, 3)).tolist() == [5, 4, 7, 1, 3, 2, 0, 6]

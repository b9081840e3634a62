from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.duplicates import DuplicateFinder

few_pairs = st.lists(st.lists(st.tuples(st.sampled_from("abc "), st.sampled_from("abc")), max_size=30))


@given(few_pairs)
def test_every_pair_knows_where_it_was_first_seen(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[tuple[str, str]]]
) -> None:
    with DuplicateFinder(tmp_path_factory.mktemp("duplicates")) as finder:
        for chunk in chunks:
            finder.add(chunk)
        first = finder.find_first()
    pairs = [pair for chunk in chunks for pair in chunk]
    assert first.tolist() == [pairs.index(pair) for pair in pairs]


def test_a_pair_is_more_than_its_two_texts_in_a_row(tmp_path: Path) -> None:
    with DuplicateFinder(tmp_path) as finder:
        finder.add([("ab", "c"), ("a", "bc"), ("ab", "c")])
        assert finder.find_first().tolist() == [0, 1, 0]


def test_many_pairs_are_compared_with_all_others(tmp_path: Path) -> None:
    with DuplicateFinder(tmp_path) as finder:
        for start in range(0, 20_000, 1000):
            finder.add((str(number % 15_000), "x") for number in range(start, start + 1000))
        assert finder.find_first().tolist() == [number % 15_000 for number in range(20_000)]

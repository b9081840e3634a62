from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import duplicates
from regard.data.duplicates import DuplicateFinder

few_pairs = st.lists(st.lists(st.tuples(st.sampled_from("abc "), st.sampled_from("abc")), max_size=30))


@given(few_pairs, st.sampled_from([1, 10, 1 << 17]))
def test_every_pair_knows_where_it_was_first_seen_in_memory_or_by_way_of_files(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[tuple[str, str]]], rows_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, DuplicateFinder(tmp_path_factory.mktemp("duplicates")) as finder:
        patch.setattr(duplicates, "_ROWS_AT_ONCE", rows_at_once)
        for chunk in chunks:
            finder.add(chunk)
        first = finder.find_first()
    pairs = [pair for chunk in chunks for pair in chunk]
    assert first.tolist() == [pairs.index(pair) for pair in pairs]


def test_a_pair_is_more_than_its_two_texts_in_a_row(tmp_path: Path) -> None:
    with DuplicateFinder(tmp_path) as finder:
        finder.add([("ab", "c"), ("a", "bc"), ("ab", "c")])
        assert finder.find_first().tolist() == [0, 1, 0]


def test_many_pairs_are_compared_with_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "_ROWS_AT_ONCE", 4096)
    with DuplicateFinder(tmp_path) as finder:
        for start in range(0, 20_000, 1000):
            finder.add((str(number % 15_000), "x") for number in range(start, start + 1000))
        assert finder.find_first().tolist() == [number % 15_000 for number in range(20_000)]
        assert len(list(tmp_path.glob("hashes-*.bin"))) == 64


def test_few_pairs_need_no_files(tmp_path: Path) -> None:
    with DuplicateFinder(tmp_path) as finder:
        finder.add([("a", "b"), ("a", "b")])
        assert finder.find_first().tolist() == [0, 0]
    assert not list(tmp_path.iterdir())

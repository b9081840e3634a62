from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import batches
from regard.data.batches import (
    Plan,
    Position,
    collate,
    cut_into_pieces,
    largest_pieces,
    padding,
    plan_epoch,
    sequential_pieces,
    steps,
)
from regard.errors import UserError
from regard.tokens import END, PAD, START

lengths = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=80)


@pytest.fixture(autouse=True)
def _many_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "POOL", 30)


def rows_of(plan: Plan) -> list[int]:
    return [int(row) for pool in range(plan.pools) for step in plan.pool(pool) for piece in step for row in piece]


# ---- the plan --------------------------------------------------------------------------------------------------------


@given(lengths, st.integers(12, 60), st.integers(1, 4), st.integers(0, 9))
def test_an_epoch_sees_every_pair_once_within_the_budget(make_store, pairs, budget, pieces, epoch) -> None:
    store = make_store(pairs)
    plan = plan_epoch(store, budget, pieces, seed=3, epoch=epoch)
    assert sorted(rows_of(plan)) == list(range(len(store)))
    for pool in range(plan.pools):
        for step in plan.pool(pool):
            assert 1 <= len(step) <= pieces
            for piece in step:
                source, target = store.lengths(piece)
                assert len(piece) * max(source.max(), target.max()) <= budget


@given(lengths, st.integers(12, 40), st.integers(1, 4))
def test_steps_of_a_pool_differ_by_at_most_one_piece(make_store, pairs, budget, pieces) -> None:
    plan = plan_epoch(make_store(pairs), budget, pieces, seed=3, epoch=0)
    for pool in range(plan.pools):
        sizes = [len(step) for step in plan.pool(pool)]
        assert max(sizes) - min(sizes) <= 1


@given(lengths, st.floats(0.01, 5), lengths, st.floats(0.01, 5))
def test_a_weight_says_how_often_an_epoch_sees_a_corpus(make_store, first, one, second, other) -> None:
    store = make_store(first, second, weights=(one, other))
    counts = Counter(rows_of(plan_epoch(store, 60, 2, seed=3, epoch=1)))
    for corpus in store.corpora:
        own = [counts[row] for row in range(corpus.first, corpus.first + corpus.count)]
        assert sum(own) == max(1, round(corpus.count * corpus.weight))
        assert max(own) - min(own) <= 1


def test_the_part_of_a_corpus_with_a_fraction_as_its_weight_changes_with_the_epoch(make_store) -> None:
    store = make_store([(3, 3)] * 100, weights=(0.2,))
    parts = [set(rows_of(plan_epoch(store, 60, 2, seed=3, epoch=epoch))) for epoch in range(30)]
    assert all(len(part) == 20 for part in parts)
    assert len(set.union(*parts)) > 95


def test_an_empty_corpus_among_others_is_skipped(make_store) -> None:
    assert sorted(rows_of(plan_epoch(make_store([], [(2, 2)] * 5, []), 60, 2, seed=3, epoch=0))) == [0, 1, 2, 3, 4]


def test_a_plan_is_a_function_of_seed_and_epoch(make_store) -> None:
    store = make_store([(number % 7 + 1, number % 5 + 1) for number in range(200)])
    orders = {
        (seed, epoch): rows_of(plan_epoch(store, 40, 2, seed, epoch))
        for seed, epoch in [(1, 0), (1, 1), (2, 0)]
        for _ in range(2)
    }
    assert len(set(map(tuple, orders.values()))) == 3
    assert rows_of(plan_epoch(store, 40, 2, 1, 0)) == orders[1, 0]


def test_a_pair_beyond_the_budget_is_an_error_that_names_the_settings(make_store) -> None:
    with pytest.raises(UserError, match=r"longest sentence has 50 tokens.*holds 40.*training\.batch_tokens"):
        plan_epoch(make_store([(3, 50)]), 40, 2, seed=3, epoch=0)


def test_an_empty_store_is_an_error(make_store) -> None:
    with pytest.raises(UserError, match="no pairs"):
        plan_epoch(make_store([]), 40, 2, seed=3, epoch=0)


# ---- steps -----------------------------------------------------------------------------------------------------------


def flat(step) -> list[list[int]]:
    return [piece.tolist() for piece in step]


def test_going_on_from_any_position_gives_the_same_steps(make_store) -> None:
    store = make_store([(number % 7 + 1, number % 5 + 1) for number in range(100)])
    walk = list(islice(steps(store, 20, 2, seed=3), 60))
    assert {position.epoch for position, _ in walk} >= {0, 1}
    assert {position.pool for position, _ in walk} >= {0, 1, 2}
    for number in range(0, 55):
        position = Position(**walk[number][0].to_dict())
        (after, step), *_ = islice(steps(store, 20, 2, seed=3, start=position), 1)
        assert (after, flat(step)) == (walk[number + 1][0], flat(walk[number + 1][1]))


def test_steps_walk_through_each_epoch(make_store) -> None:
    store = make_store([(2, 3)] * 70)
    plans = [plan_epoch(store, 20, 2, seed=3, epoch=epoch) for epoch in range(2)]
    expected = [flat(step) for plan in plans for pool in range(plan.pools) for step in plan.pool(pool)]
    assert [flat(step) for _, step in islice(steps(store, 20, 2, seed=3), len(expected))] == expected


# ---- other pieces ----------------------------------------------------------------------------------------------------


@given(lengths, st.integers(5, 60))
def test_sequential_pieces_have_every_row_once(make_store, pairs, budget) -> None:
    store = make_store(pairs)
    pieces = list(sequential_pieces(store, budget))
    assert sorted(np.concatenate(pieces).tolist()) == list(range(len(pairs)))
    for piece in pieces:
        assert len(piece) == 1 or len(piece) * max(side.max() for side in store.lengths(piece)) <= budget


@given(lengths, st.integers(12, 60))
def test_the_largest_pieces_have_the_longest_sentences_and_fit(make_store, pairs, budget) -> None:
    store = make_store(pairs)
    pieces = largest_pieces(store, budget)
    assert all(len(piece) * max(side.max() for side in store.lengths(piece)) <= budget for piece in pieces)
    assert store.lengths(pieces[0])[0].max() == store.longest_source
    assert store.lengths(pieces[1])[1].max() == store.longest_target


def test_equal_lengths_need_no_padding(make_store) -> None:
    assert padding(make_store([(5, 7)] * 50), 70) == 0


def test_padding_is_the_share_of_positions_that_are_padding(make_store) -> None:
    assert padding(make_store([(4, 4), (2, 2)]), 100) == pytest.approx(4 / 16)


def test_neighbours_within_a_pool_are_alike_on_both_sides(make_store) -> None:
    random = np.random.default_rng(1)
    pairs = [(int(length), int(length + random.integers(-3, 4))) for length in random.integers(5, 40, 3000)]
    store = make_store(pairs)
    pieces = cut_into_pieces(store, np.arange(len(store)), 500)
    positions = sum(len(piece) * sum(int(side.max()) for side in store.lengths(piece)) for piece in pieces)
    assert 1 - sum(map(sum, pairs)) / positions < 0.03


# ---- arrays ----------------------------------------------------------------------------------------------------------


@given(lengths, st.data())
def test_a_batch_holds_each_pair_between_start_end_and_padding(make_store, pairs, data) -> None:
    store = make_store(pairs)
    rows = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=9)))
    batch = collate(store, rows)
    source_width = max(pairs[row][0] for row in rows)
    target_width = max(pairs[row][1] for row in rows)
    assert batch.src.shape == (len(rows), source_width)
    assert batch.tgt.shape == (len(rows), target_width + 1)
    assert batch.src.dtype == batch.tgt.dtype == np.int64
    assert batch.tokens == sum(pairs[row][1] for row in rows) == (batch.tgt[:, 1:] != PAD).sum()
    for number, row in enumerate(rows):
        source, target = store.source(row).tolist(), store.target(row).tolist()
        assert batch.src[number].tolist() == source + [PAD] * (source_width - len(source))
        assert batch.tgt[number].tolist() == [START, *target] + [PAD] * (target_width - len(target))
        assert target[-1] == END
    assert batch.rows is rows

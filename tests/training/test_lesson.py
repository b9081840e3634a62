"""A step's pairs, shared out to threads: every pair once and whole, and nobody waits for long."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import Batch
from regard.tokens import END, PAD, START
from regard.training.lesson import Pairs, TokenCost, join, share_out

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=20)
BATCHES = st.lists(LENGTHS, min_size=1, max_size=3)
COSTS = st.builds(TokenCost, st.integers(1, 10**5), st.integers(1, 10**5))


def make_batch(lengths, first):
    """Return a batch of pairs with these (source, target) lengths, end tokens counted; all other tokens differ."""
    src = np.full((len(lengths), max(source for source, _ in lengths)), PAD)
    tgt = np.full((len(lengths), 1 + max(target for _, target in lengths)), PAD)
    for row, (source, target) in enumerate(lengths):
        src[row, :source] = [*range(first, first + source - 1), END]
        tgt[row, : target + 1] = [START, *range(first, first + target - 1), END]
        first += max(source, target)
    return Batch(src, tgt, sum(target for _, target in lengths), np.arange(len(lengths)))


def make_pairs(batches):
    made = [make_batch(lengths, 10 + 10_000 * number) for number, lengths in enumerate(batches)]
    return join(made, seeds=range(len(made)))


def read(pairs: Pairs):
    """Return all that is known of each pair, by pair."""
    source, target = (np.split(np.arange(lengths.sum()), lengths.cumsum()[:-1]) for lengths in pairs[:2])
    return [
        (pairs.source[s].tolist(), pairs.target[t].tolist(), pairs.following[t].tolist(), pairs.draws[number].tolist())
        for number, (s, t) in enumerate(zip(source, target, strict=True))
    ]


def loads_of(pairs, ends, cost):
    """Return what the pairs of each thread cost, pair by pair."""
    costs = pairs.source_lengths.astype(int) * cost.source + pairs.target_lengths.astype(int) * cost.target
    return np.split(costs, ends[:-1])


@given(batches=BATCHES)
def test_joined_batches_have_every_pair_without_padding(batches):
    found = read(make_pairs(batches))
    lengths = [pair for batch in batches for pair in batch]
    assert [(len(source), len(target)) for source, target, _, _ in found] == lengths
    assert all(source[-1] == END and target[0] == START and says[-1] == END for source, target, says, _ in found)
    assert all(target[1:] == says[:-1] for _, target, says, _ in found)


@given(batches=BATCHES, cost=COSTS, threads=st.integers(1, 5))
def test_every_pair_is_given_to_one_thread_with_all_that_belongs_to_it(batches, cost, threads):
    pairs = make_pairs(batches)
    shared, ends = share_out(pairs, cost, threads)
    assert sorted(read(shared)) == sorted(read(pairs))
    assert [len(ends), ends[-1]] == [threads, len(pairs.draws)]
    assert all(np.diff(ends, prepend=0) >= 0)


@given(batches=BATCHES, cost=COSTS, threads=st.integers(1, 5))
def test_without_its_cheapest_pair_no_thread_has_more_to_do_than_another(batches, cost, threads):
    shared, ends = share_out(make_pairs(batches), cost, threads)
    loads = loads_of(shared, ends, cost)
    least = min(load.sum() for load in loads)
    assert all(load.sum() - load.min() <= least for load in loads if len(load))


def test_two_batches_of_other_lengths_are_mixed_so_that_threads_have_the_same_to_do():
    """Cut in two where it lies, this would be 5 pairs of 60 beside 2 of 60 and 12 of 10."""
    shared, ends = share_out(make_pairs([[(60, 60)] * 7, [(10, 10)] * 12]), TokenCost(2, 3), 2)
    assert [int(load.sum()) for load in loads_of(shared, ends, TokenCost(2, 3))] == [270 * 5, 270 * 5]


@given(batches=BATCHES, cost=COSTS)
def test_one_thread_takes_the_pairs_as_they_come(batches, cost):
    pairs = make_pairs(batches)
    assert read(share_out(pairs, cost, 1)[0]) == read(pairs)


def test_long_pairs_of_a_large_model_do_not_count_round():
    lengths = [(60_000, 60_000), (1, 1), (1, 1), (1, 1)]
    _, ends = share_out(make_pairs([lengths]), TokenCost(10**5, 10**5), 2)
    assert ends.tolist() == [1, 4]

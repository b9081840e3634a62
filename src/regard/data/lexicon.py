"""Which target tokens a source token tends to become, learned from a token store alone: IBM Model 1.

P(target | source) starts as the share of a source token's sentences that have the target token, and is made sharper by
some rounds of expectation and maximisation: the source tokens of a sentence compete for each of its target tokens, so
that what is merely often nearby loses. The source's end token is in every sentence and takes what comes from nowhere.

A pair of S source and T target tokens gives S · T links. Links are counted in chunks, from an even sample of the pairs
if there are too many, and when the table is full, each source token's rarest are forgotten: memory and time are bounded
for any corpus.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.store import Store

_ROUNDS = 3
_MOST_LINKS = 200_000_000  # of the pairs looked at: some minutes
_CHUNK = 1 << 21  # links at a time; a pair that has more is left out
_FULL = 1 << 23  # different links that are kept
_BLOCK = 1 << 20  # pairs whose lengths are looked at together


class Lexicon(NamedTuple):
    """Links, sorted by source and then by target, each with P(target | source)."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    probability: NDArray[np.float64]

    def likeliest(self, count: int) -> "Lexicon":
        """Return the `count` likeliest targets of each source, those that are not quite impossible."""
        kept = _best(self.source, self.probability, count)
        kept = kept[self.probability[kept] > 0]
        return Lexicon(self.source[kept], self.target[kept], self.probability[kept])


def frequent_targets(store: Store, vocabulary_size: int, count: int) -> NDArray[np.int64]:
    """Return the `count` most frequent target tokens of the pairs that `learn_lexicon` looks at, sorted."""
    seen = np.zeros(vocabulary_size, np.int64)
    for rows in _chunks(store):
        seen += np.bincount(_tokens(store, 2 * rows + 1)[0], minlength=vocabulary_size)
    best = np.argsort(-seen, kind="stable")[:count]
    return np.sort(best[seen[best] > 0])


def learn_lexicon(store: Store, vocabulary_size: int, without: NDArray[np.int64]) -> Lexicon:
    """Learn P(target | source) for all targets but those in `without`, which need no list as they are in all."""
    wanted = np.ones(vocabulary_size, bool)
    wanted[without] = False
    keys, counts = _count(store, wanted)
    source = keys // vocabulary_size
    probability = counts / np.bincount(source, counts, vocabulary_size)[source]
    for _ in range(_ROUNDS):
        expected = _expect(store, wanted, keys, probability)
        total = np.bincount(source, expected, vocabulary_size)
        probability = expected / np.maximum(total, np.finfo(float).tiny)[source]
    return Lexicon(source, keys % vocabulary_size, probability)


# ---- links -----------------------------------------------------------------------------------------------------------


class _Links(NamedTuple):
    """All links of some pairs: source · vocabulary + target, and the number of the target token they lead to."""

    key: NDArray[np.int64]
    place: NDArray[np.int64]


def _links(store: Store, rows: NDArray[np.int64], wanted: NDArray[np.bool_]) -> _Links:
    sources, lengths = _tokens(store, 2 * rows)
    targets, target_lengths = _tokens(store, 2 * rows + 1)
    pair = np.repeat(np.arange(len(rows)), target_lengths)  # of each target token
    kept = wanted[targets]
    targets, pair = targets[kept], pair[kept]
    fan = lengths[pair]  # links of each target token
    place = np.repeat(np.arange(len(targets)), fan)
    within = np.arange(len(place)) - np.repeat(np.cumsum(fan) - fan, fan)
    source = sources[(np.cumsum(lengths) - lengths)[pair][place] + within]
    return _Links(source * len(wanted) + targets[place], place)


def _tokens(store: Store, sequences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of some sequences of the store, one after the other, and their lengths."""
    start, end = (store.offsets[sequences + part].astype(np.int64) for part in (0, 1))
    lengths = end - start
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return store.tokens[np.repeat(start, lengths) + within].astype(np.int64), lengths


def _chunks(store: Store) -> Iterator[NDArray[np.int64]]:
    """Yield rows that have about a chunk's links together: all rows, or an even sample of them."""
    step = max(1, -(-sum(int(links.sum()) for _, links in _count_links(store, 1)) // _MOST_LINKS))
    for rows, links in _count_links(store, step):
        kept = links <= _CHUNK
        ends = np.cumsum(links[kept])
        cuts = np.searchsorted(ends, np.arange(_CHUNK, ends[-1] if len(ends) else 0, _CHUNK))
        yield from (part for part in np.split(rows[kept], cuts) if len(part))


def _count_links(store: Store, step: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield each `step`-th row and its number of links, in blocks."""
    for start in range(0, len(store), _BLOCK * step):
        rows = np.arange(start, min(start + _BLOCK * step, len(store)), step)
        sources, targets = store.lengths(rows)
        yield rows, sources * targets


# ---- counting and expecting ------------------------------------------------------------------------------------------

_Counts = tuple[NDArray[np.int64], NDArray[np.int32]]


def _count(store: Store, wanted: NDArray[np.bool_]) -> _Counts:
    """Return the different links and how often each occurs."""
    tables: list[_Counts] = [(np.empty(0, np.int64), np.empty(0, np.int32))]
    for rows in _chunks(store):
        keys, counts = np.unique(_links(store, rows, wanted).key, return_counts=True)
        tables.append((keys, counts.astype(np.int32)))
        # Tables of like size are added, so that a link is copied a few times only, however many chunks there are.
        while len(tables) > 1 and len(tables[-2][0]) < 2 * len(tables[-1][0]):
            tables.append(_forget(_add(tables.pop(), tables.pop()), len(wanted)))
    while len(tables) > 1:
        tables.append(_forget(_add(tables.pop(), tables.pop()), len(wanted)))
    return tables[0]


def _add(one: _Counts, other: _Counts) -> _Counts:
    keys, counts = np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.add.reduceat(counts, firsts) if len(firsts) else counts


def _forget(table: _Counts, vocabulary_size: int) -> _Counts:
    """Drop the rarest links of each source token from a table that is too large: a rare token keeps all it has."""
    keys, counts = table
    if len(keys) <= _FULL:
        return table
    kept = _best(keys // vocabulary_size, counts, max(1, _FULL // vocabulary_size))
    return keys[kept], counts[kept]


def _best(source: NDArray[np.int64], value: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return, in order, where the `count` largest values of each source token are; `source` is sorted."""
    order = np.lexsort((-value, source))
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    return np.sort(order[rank < count])


def _expect(
    store: Store, wanted: NDArray[np.bool_], keys: NDArray[np.int64], probability: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how often each link is expected to be the one that made a target token."""
    expected = np.zeros(len(keys))
    for rows in _chunks(store) if len(keys) else ():
        links = _links(store, rows, wanted)
        index = np.minimum(np.searchsorted(keys, links.key), len(keys) - 1)
        known = keys[index] == links.key
        index, place = index[known], links.place[known]
        weight = probability[index]
        weight /= np.bincount(place, weight)[place]
        expected += np.bincount(index, weight, len(keys))
    return expected

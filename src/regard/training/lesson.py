"""What a step learns from, as the compiled library reads it: pairs without padding, shared out to threads."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import Batch
from regard.tokens import PAD

_Array = NDArray[Any]


class TokenCost(NamedTuple):
    """What a token of each side costs: the weights that it is multiplied by, but for a common factor."""

    source: int
    target: int


class Pairs(NamedTuple):
    """B pairs one after the other, end tokens counted; the order of fields is that of the library's `Lesson`."""

    source_lengths: _Array  # (B,) of int32
    target_lengths: _Array  # (B,) of int32
    source: _Array  # int32: tokens
    target: _Array  # int32: tokens that are read, from the start token on
    following: _Array  # int64: tokens that are to be said, up to the end token
    draws: _Array  # (B, 5) of uint64: what dropout is drawn by, see `_draws`
    factors: _Array  # (B,) of float32: what the loss of each counts


def join(batches: Sequence[Batch], seeds: Sequence[int]) -> Pairs:
    """Return the pairs of all batches; what dropout drops in one depends on its batch's seed alone."""
    parts = [_unpad(batch, seed) for batch, seed in zip(batches, seeds, strict=True)]
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def share_out(pairs: Pairs, cost: TokenCost, threads: int) -> tuple[Pairs, NDArray[np.int32]]:
    """Return the pairs in another order, one thread's behind the other's, and (threads,) where each one's end.

    All threads get as much to do as can be with whole pairs, because each step waits for the last of them: the dearest
    pairs are given away first, each to the thread that has least.
    """
    lengths = np.stack(pairs[:2], axis=1).astype(np.int64)
    costs = lengths @ np.array(cost)
    loads = [(0, thread) for thread in range(threads)]
    heapify(loads)
    thread_of = np.zeros(len(costs), np.int64)
    for pair in np.argsort(-costs, kind="stable").tolist():
        load, thread = loads[0]
        thread_of[pair] = thread
        heapreplace(loads, (load + int(costs[pair]), thread))
    ends = np.bincount(thread_of, minlength=threads).cumsum().astype(np.int32)
    return _reorder(pairs, np.argsort(thread_of, kind="stable")), ends


def _reorder(pairs: Pairs, order: _Array) -> Pairs:
    source, target = (_places(lengths, order) for lengths in (pairs.source_lengths, pairs.target_lengths))
    orders = order, order, source, target, target, order, order
    return Pairs(*(array[places] for array, places in zip(pairs, orders, strict=True)))


def _places(lengths: _Array, order: _Array) -> _Array:
    """Return where each token is that belongs to pairs of these lengths, in another order of the pairs."""
    starts, wanted = lengths.cumsum() - lengths, lengths[order]
    moves = np.repeat(starts[order] - (wanted.cumsum() - wanted), wanted)
    return moves + np.arange(len(moves))


def _unpad(batch: Batch, seed: int) -> Pairs:
    reads, says = batch.tgt[:, :-1], batch.tgt[:, 1:]
    source, target = batch.src != PAD, says != PAD
    lengths = source.sum(axis=1, dtype=np.int32), target.sum(axis=1, dtype=np.int32)
    tokens = batch.src[source].astype(np.int32), reads[target].astype(np.int32), says[target]
    factors = np.ones(len(batch.src), np.float32) if batch.factors is None else batch.factors
    return Pairs(*lengths, *tokens, _draws(lengths, seed), factors)


def _draws(lengths: Sequence[_Array], seed: int) -> NDArray[np.uint64]:
    """Return (B, 5): the batch's seed and, by side and pass, the number of a sentence's first row among the batch's."""
    draws = np.full((len(lengths[0]), 5), seed % 2**64, np.uint64)
    for side, counts in enumerate(lengths):
        ends = counts.cumsum(dtype=np.uint64)
        draws[:, 1 + 2 * side] = ends - counts.astype(np.uint64)
        draws[:, 2 + 2 * side] = draws[:, 1 + 2 * side] + ends[-1]  # the second pass comes behind the first
    return draws

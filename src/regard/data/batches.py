"""Batches: the plan of an epoch, a pure function of (lengths, budget in tokens, seed, epoch), and its arrays.

An epoch's order is a pseudo-random permutation that is computed, not stored (data/permutation.py). It is cut into pools
of some 100,000 pairs. Within a pool, pairs of like lengths become pieces, which are shuffled and dealt out to steps; a
step is one update of the weights, a piece what is computed at once (§5.1). Memory is that of one pool, whatever the
size of the corpus.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.permutation import permute
from regard.data.store import Rows, Store, StoredCorpus
from regard.errors import UserError
from regard.tokens import PAD, START

POOL = 100_000
"""Pairs that are sorted by length together, about."""

Step = tuple[Rows, ...]

# What a key of the permutation is for; the seed and the epoch complete it.
_ORDER, _PART, _DEAL = range(3)


# ---- the plan of an epoch --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The steps of one epoch; each is a tuple of pieces, and a piece is an array of the store's rows."""

    store: Store
    piece_tokens: int
    pieces: int
    seed: int
    epoch: int

    @property
    def pairs(self) -> int:
        """Pairs that the epoch sees: each corpus as often as its weight says."""
        return sum(map(_draws, self.store.corpora))

    @property
    def pools(self) -> int:
        """Parts of the epoch that are planned one after the other."""
        return max(1, round(self.pairs / POOL))

    def pool(self, index: int) -> list[Step]:
        """Return the steps of a pool; they have `pieces` pieces each, or all a little fewer."""
        first, end = (self.pairs * bound // self.pools for bound in (index, index + 1))
        pieces = cut_into_pieces(self.store, self._rows(np.arange(first, end)), self.piece_tokens)
        count = len(pieces)
        order = permute(np.arange(count), count, (self.seed, self.epoch, _DEAL, index)).tolist()
        steps = -(-count // self.pieces)
        bounds = [count * step // steps for step in range(steps + 1)]
        return [tuple(pieces[number] for number in order[start:end]) for start, end in pairwise(bounds)]

    def _rows(self, positions: Rows) -> Rows:
        """Return the store's rows at positions of the epoch's order."""
        drawn = permute(positions, self.pairs, (self.seed, self.epoch, _ORDER))
        rows = np.empty_like(drawn)
        first = 0
        for number, corpus in enumerate(self.store.corpora):
            draws = _draws(corpus)
            own = (drawn >= first) & (drawn < first + draws)
            rows[own] = corpus.first + self._draw(drawn[own] - first, corpus, number)
            first += draws
        return self.store.in_epoch(rows, self.epoch)

    def _draw(self, draws: Rows, corpus: StoredCorpus, number: int) -> Rows:
        """Return which pair of a corpus each draw is: every pair in whole rounds, then a part new in each epoch."""
        within = draws % max(corpus.count, 1)
        part = draws >= _draws(corpus) // max(corpus.count, 1) * corpus.count
        within[part] = permute(within[part], corpus.count, (self.seed, self.epoch, _PART, number))
        return within


def plan_epoch(store: Store, piece_tokens: int, pieces: int, seed: int, epoch: int) -> Plan:
    """Plan an epoch: pieces of at most `piece_tokens` tokens a side, padding counted, and `pieces` of them a step.

    Raises `UserError` if the store is empty or a single pair exceeds the budget.
    """
    longest = store.longest
    if longest == 0:
        raise UserError(f"{store.folder}: no pairs to train on")
    if longest > piece_tokens:
        raise UserError(
            f"the longest sentence has {longest:,} tokens, but a piece of a batch holds {piece_tokens:,}: raise "
            "training.batch_tokens or training.micro_batch_tokens, or lower data.max_length"
        )
    return Plan(store, piece_tokens, pieces, seed, epoch)


def cut_into_pieces(store: Store, rows: Rows, piece_tokens: int) -> list[Rows]:
    """Sort rows by length and cut them so that rows × longest is at most `piece_tokens` on both sides of each piece.

    The longer side counts for the budget, so it is the first key. Within one such length the pairs go from those with
    the longer target to those with the longer source, and in the next length back again, so that neighbours are alike
    on both sides. Ties stay in the order of `rows`. A pair that exceeds the budget is a piece of its own.
    """
    source, target = store.lengths(rows)
    longer = np.maximum(source, target)
    difference = np.where(longer % 2 == 0, source - target, target - source)
    order = np.lexsort((difference, longer))
    rows, lengths = rows[order], longer[order].tolist()
    bounds = [0]
    while bounds[-1] < len(rows):
        bounds.append(_find_end(lengths, bounds[-1], piece_tokens))
    return [rows[start:end] for start, end in pairwise(bounds)]


def _find_end(lengths: list[int], start: int, budget: int) -> int:
    """Return where the piece from `start` must end; lengths rise, so the area of a longer piece is never smaller."""
    ends = range(start + 1, len(lengths) + 1)
    fitting = bisect_right(ends, budget, key=lambda end: (end - start) * lengths[end - 1])
    return start + max(1, fitting)


def _draws(corpus: StoredCorpus) -> int:
    """Pairs of a corpus that an epoch sees, repeats counted; at least one of a corpus that has any."""
    return max(round(corpus.count * corpus.weight), min(corpus.count, 1))


# ---- steps without end -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """A step's place: enough to go on from there, without a look at what was before."""

    epoch: int = 0
    pool: int = 0
    step: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the three numbers by name."""
        return asdict(self)


def steps(
    store: Store, piece_tokens: int, pieces: int, seed: int, start: Position | None = None
) -> Iterator[tuple[Position, Step]]:
    """Yield steps without end from `start` on, each with the position of the one that comes next."""
    here = start or Position()
    while True:
        plan = plan_epoch(store, piece_tokens, pieces, seed, here.epoch)
        for pool in range(here.pool, plan.pools):
            todo = plan.pool(pool)
            following = Position(here.epoch, pool + 1) if pool + 1 < plan.pools else Position(here.epoch + 1)
            for number in range(here.step if pool == here.pool else 0, len(todo)):
                last = number + 1 == len(todo)
                yield following if last else Position(here.epoch, pool, number + 1), todo[number]
        here = Position(here.epoch + 1)


# ---- pieces for other uses -------------------------------------------------------------------------------------------


def sequential_pieces(store: Store, piece_tokens: int) -> Iterator[Rows]:
    """Yield every row of a store once, in pieces that are always the same: for validation."""
    for first in range(0, len(store), POOL):
        yield from cut_into_pieces(store, np.arange(first, min(first + POOL, len(store))), piece_tokens)


def largest_pieces(store: Store, piece_tokens: int) -> list[Rows]:
    """Return the pieces that need most memory, to be tried before hours are spent.

    These are as many of the longest sources as the budget holds, the same of the longest targets (attention grows with
    rows × length²), and the fullest piece of the first pool (all else grows with the positions).
    """
    count = max(1, piece_tokens // max(store.longest, 1))
    fullest = max(next(_pools(store, piece_tokens)), key=lambda piece: _positions(store, piece))
    return [_longest_rows(store, 0, count), _longest_rows(store, 1, count), fullest]


def _longest_rows(store: Store, side: int, count: int) -> Rows:
    longest = np.empty(0, np.int64)
    for first in range(0, len(store), POOL):
        rows = np.concatenate([longest, np.arange(first, min(first + POOL, len(store)))])
        longest = rows[np.argsort(-store.lengths(rows)[side], kind="stable")[:count]]
    return longest


def padding(store: Store, piece_tokens: int) -> float:
    """Return the share of padding among all source and target positions of an epoch."""
    real = positions = 0
    for pieces in _pools(store, piece_tokens):
        positions += sum(_positions(store, piece) for piece in pieces)
        source, target = store.lengths(np.concatenate(pieces))
        real += int(source.sum() + target.sum())
    return 1 - real / positions


def _pools(store: Store, piece_tokens: int) -> Iterator[list[Rows]]:
    plan = Plan(store, piece_tokens, 1, seed=0, epoch=0)
    for pool in range(plan.pools):
        yield [piece for step in plan.pool(pool) for piece in step]


def _positions(store: Store, piece: Rows) -> int:
    source, target = store.lengths(piece)
    return int(len(piece) * (source.max() + target.max()))


# ---- arrays ----------------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """A piece as arrays: B pairs, S and T the longest source and target, end tokens counted."""

    src: NDArray[np.int64]  # (B, S): ids, end, padding
    tgt: NDArray[np.int64]  # (B, T + 1): start, ids, end, padding
    tokens: int  # of the target, end tokens counted, padding and start not
    rows: Rows  # (B,)
    factors: NDArray[np.float32] | None = None  # (B,) if not the smoothed loss is learned, but so many times -log P


def collate(store: Store, rows: Rows) -> Batch:
    """Read rows of a store into padded arrays."""
    source, source_lengths = store.read(2 * rows)
    target, target_lengths = store.read(2 * rows + 1)
    src = _pad(source, source_lengths, lead=0)
    tgt = _pad(target, target_lengths, lead=1)
    return Batch(src, tgt, len(target), rows)


def _pad(ids: NDArray[np.int64], lengths: NDArray[np.int64], lead: int) -> NDArray[np.int64]:
    width = int(lengths.max(initial=0))
    padded = np.full((len(lengths), lead + width), PAD, np.int64)
    padded[:, :lead] = START
    padded[:, lead:][np.arange(width) < lengths[:, None]] = ids
    return padded

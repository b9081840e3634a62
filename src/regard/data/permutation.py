"""A pseudo-random order that is computed, not stored: where a shuffled list of any size has its elements.

An order of n things is a bijection of range(n). This one is a Feistel network over the grid of the smallest rectangle
of about √n by √n that holds n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002): a row number is moved
by a hash of the column number, then the other way round, some times over. Few cells of the grid lie outside of
range(n); from one of these the walk goes on until it is inside again.
"""

from math import isqrt

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 4


def permute(positions: NDArray[np.int64], size: int, key: tuple[int, ...]) -> NDArray[np.int64]:
    """Return what stands at `positions` of range(size) in the order named by `key`; bijective on range(size)."""
    if size < 2:
        return positions.copy()
    width = isqrt(size - 1) + 1
    height = -(-size // width)
    round_keys = np.random.SeedSequence(key).generate_state(2 * _ROUNDS, np.uint64).astype(np.uint64)
    cells = _scramble(positions.astype(np.uint64), width, height, round_keys)
    while (outside := np.flatnonzero(cells >= size)).size:
        cells[outside] = _scramble(cells[outside], width, height, round_keys)
    return cells.astype(np.int64)


def _scramble(cells: NDArray[np.uint64], width: int, height: int, round_keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    rows, columns = np.uint64(height), np.uint64(width)
    row, column = cells // columns, cells % columns
    for even, odd in round_keys.reshape(-1, 2):
        row = (row + hash_numbers(column ^ even)) % rows
        column = (column + hash_numbers(row ^ odd)) % columns
    return row * columns + column


def hash_numbers(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's last step: every bit of the input moves every bit of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

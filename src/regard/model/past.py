"""What a decoder layer's self-attention has seen: keys and values, in buffers that have room for what comes.

Shapes: B sequences, H heads, T positions so far, E head width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_ROOM = 16  # positions by which buffers grow


@dataclass
class _Buffers:
    """Keys and values (B, H, room, E), of which the first `filled` positions belong to somebody."""

    keys: Tensor
    values: Tensor
    filled: int


@dataclass(frozen=True)
class Past:
    """The positions so far. Appending one copies nothing, unless another past has continued this one already."""

    buffers: _Buffers
    length: int  # T

    @classmethod
    def empty(cls, keys: Tensor, values: Tensor) -> "Past":
        """Return a past without positions, for keys and values like these (B, H, …, E)."""
        return cls(_Buffers(_with_room(keys[:, :, :0]), _with_room(values[:, :, :0]), filled=0), length=0)

    def append(self, keys: Tensor, values: Tensor, remember: int | None = None) -> "Past":
        """Return the past with one position more, (B, H, 1, E).

        With `remember`, positions before that many last ones are forgotten when the buffers are full.
        """
        if self.buffers.filled != self.length or self.length == self.buffers.keys.size(2):
            return self._moved(self.length if remember is None else min(remember, self.length)).append(keys, values)
        self.buffers.keys[:, :, self.length] = keys[:, :, 0]
        self.buffers.values[:, :, self.length] = values[:, :, 0]
        self.buffers.filled = self.length + 1
        return Past(self.buffers, self.length + 1)

    def last(self, count: int | None = None) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, H, T, E) of the last `count` positions, or of all."""
        first = 0 if count is None else max(0, self.length - count)
        return self.buffers.keys[:, :, first : self.length], self.buffers.values[:, :, first : self.length]

    def select(self, rows: Tensor) -> "Past":
        """Return the pasts of some of the sequences, in the order given."""
        keys, values = self.buffers.keys.index_select(0, rows), self.buffers.values.index_select(0, rows)
        return Past(_Buffers(keys, values, self.length), self.length)

    def _moved(self, count: int) -> "Past":
        """Return the last `count` positions in larger buffers of their own."""
        keys, values = (_with_room(part) for part in self.last(count))
        return Past(_Buffers(keys, values, filled=count), count)


def _with_room(x: Tensor) -> Tensor:
    """Copy (B, H, T, E) into a buffer with room for more; what is not filled yet is moved along, but never read."""
    batch, heads, length, width = x.shape
    buffer = torch.zeros(batch, heads, length + _ROOM, width, dtype=x.dtype, device=x.device)
    buffer[:, :, :length] = x
    return buffer

"""Attention (§3.2): queries look at keys and take home a mixture of values.

Shapes: B batch, S source length, T target length, N queries, M keys, D d_model, H heads, E head width (d_k or d_v).
A mask is boolean and True means "may attend". Modules are named by who looks at whom.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.model.dropout import drop
from regard.model.initial import glorot
from regard.model.past import Past
from regard.native.functions import attend as compiled_attend
from regard.native.functions import can_attend


class KeysValues(NamedTuple):
    """What queries look at: keys (B, H, M, d_k) and values (B, H, M, d_v)."""

    keys: Tensor
    values: Tensor


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Return softmax(Q Kᵀ / √d_k) V (§3.2.1), shape (B, H, N, d_v).

    Masked scores are -inf before the softmax; a query that may attend to nothing gets zeros. With `dropout`, which is
    not the paper's, weights are dropped after the softmax.
    """
    if dropout and queries.device.type == "cpu":  # where torch would draw random numbers slowly
        return drop(attention_weights(queries, keys, mask, causal), dropout) @ values
    if not dropout and can_attend(queries, keys, values, mask):  # the same, compiled for short sentences
        return compiled_attend(queries, keys, values, mask, causal)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout, is_causal=causal)


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / √d_k), shape (B, H, N, M): what `attend` uses and does not show."""
    scores: Tensor = queries @ keys.transpose(-2, -1) / math.sqrt(queries.size(-1))
    if causal:
        scores = scores.masked_fill(~causal_mask(queries.size(-2), keys.size(-2), queries.device), float("-inf"))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1).nan_to_num(0.0)


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return (N, M): each position sees itself and what is left of it (§3.2.3)."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Turn (B, N, H·E) into (B, H, N, E)."""
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Turn (B, H, N, E) into (B, N, H·E): the concatenation of §3.2.2."""
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * width)


class SelfAttention(nn.Module):
    """Positions of one sequence look at each other: in the encoder at all, in the decoder only back (§3.2.3).

    W^Q, W^K and W^V of all heads lie in one matrix, so that one product serves the three.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
        neighbours: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.widths = [heads * d_k, heads * d_k, heads * d_v]
        self.neighbours = neighbours
        self.dropout = dropout
        self.query_key_value = glorot(nn.Linear(d_model, sum(self.widths), bias=bias), self.widths)
        self.output = glorot(nn.Linear(heads * d_v, d_model, bias=bias))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of `x` (B, N, D), each (B, H, N, E)."""
        queries, keys, values = self.query_key_value(x).split(self.widths, dim=-1)
        return split_heads(queries, self.heads), split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Return (B, N, D); `mask` is (B, 1, 1, N), True where a key may be looked at."""
        queries, keys, values = self.project(x)
        dropout = self.dropout if self.training else 0.0
        if self.neighbours is None or self.neighbours // 2 >= x.size(1):
            # With both masks at once, one mask says both: SDPA takes either a mask or the causal flag.
            if causal and mask is not None:
                mask, causal = mask & causal_mask(x.size(1), x.size(1), x.device), False
            mixed = attend(queries, keys, values, mask, causal, dropout)
        else:
            mixed = attend_nearby(queries, keys, values, self.neighbours // 2, mask, causal, dropout)
        return self.output(join_heads(mixed))  # type: ignore[no-any-return]

    def step(self, x: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """Look back from one new position (B, 1, D) at it and all before it; return (B, 1, D) and the longer past."""
        queries, keys, values = self.project(x)
        seen = None if self.neighbours is None else self.neighbours // 2 + 1
        past = (Past.empty(keys, values) if past is None else past).append(keys, values, seen)
        return self.output(join_heads(attend(queries, *past.last(seen)))), past

    def weights(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Return who looks at whom, (B, H, N, N), for the same arguments as `forward`."""
        queries, keys, _ = self.project(x)
        if self.neighbours is not None:
            position = torch.arange(x.size(1), device=x.device)
            near = (position[:, None] - position).abs() <= self.neighbours // 2  # (N, N)
            mask = near if mask is None else mask & near
        return attention_weights(queries, keys, mask, causal)


class CrossAttention(nn.Module):
    """The decoder looks at the encoder's output (§3.2.3)."""

    def __init__(self, d_model: int, heads: int, d_k: int, d_v: int, bias: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.widths = [heads * d_k, heads * d_v]
        self.query = glorot(nn.Linear(d_model, heads * d_k, bias=bias))
        self.key_value = glorot(nn.Linear(d_model, sum(self.widths), bias=bias), self.widths)
        self.output = glorot(nn.Linear(heads * d_v, d_model, bias=bias))

    def project_memory(self, memory: Tensor) -> KeysValues:
        """Return the keys and values of the encoder's output (B, S, D); made once for a sentence."""
        keys, values = self.key_value(memory).split(self.widths, dim=-1)
        return KeysValues(split_heads(keys, self.heads), split_heads(values, self.heads))

    def forward(self, x: Tensor, memory: KeysValues, mask: Tensor | None = None) -> Tensor:
        """Return (B, N, D) for N queries a sentence: T positions in training, K hypotheses in search."""
        queries = split_heads(self.query(x), self.heads)  # (B, H, N, d_k)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(queries, memory.keys, memory.values, mask, dropout=dropout)
        return self.output(join_heads(mixed))  # type: ignore[no-any-return]

    def weights(self, x: Tensor, memory: KeysValues, mask: Tensor | None = None) -> Tensor:
        """Return who looks at whom, (B, H, N, S), for the same arguments as `forward`."""
        return attention_weights(split_heads(self.query(x), self.heads), memory.keys, mask)


def attend_nearby(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    reach: int,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attend to the neighbourhood of `reach` positions to each side (§4): cost grows as reach · N, not N².

    The sequence is cut into blocks of `reach` positions; a block's queries can only reach their own block and the two
    beside it, so scores are computed for those 3 · reach keys and masked to the exact neighbourhood.
    """
    batch, heads, length, _ = queries.shape
    size = max(reach, 1)  # of a block
    blocks = -(-length // size)
    queries = _blocks(queries, blocks, size)  # (B, H, blocks, size, d_k)
    keys, values = _with_beside(_blocks(keys, blocks, size)), _with_beside(_blocks(values, blocks, size))

    position = torch.arange(blocks * size, device=queries.device).view(blocks, size, 1)
    first_key = torch.arange(blocks, device=queries.device) * size - size
    key_position = first_key.view(blocks, 1, 1) + torch.arange(3 * size, device=queries.device)
    distance = position - key_position  # (blocks, size, 3·size)
    near = (distance.abs() <= reach) & (key_position >= 0) & (key_position < length)
    if causal:
        near = near & (distance >= 0)
    if mask is not None:
        allowed = F.pad(mask.view(batch, 1, length), (0, blocks * size - length))
        near = near & _with_beside(allowed.view(batch, 1, blocks, size, 1)).transpose(-2, -1)
    mixed = attend(queries, keys, values, near, dropout=dropout)  # (B, H, blocks, size, d_v)
    return mixed.reshape(batch, heads, blocks * size, -1)[:, :, :length]


def _blocks(x: Tensor, blocks: int, size: int) -> Tensor:
    """Cut (B, H, N, E) into (B, H, blocks, size, E), filled up with zeros."""
    batch, heads, length, width = x.shape
    return F.pad(x, (0, 0, 0, blocks * size - length)).view(batch, heads, blocks, size, width)


def _with_beside(x: Tensor) -> Tensor:
    """Join each block with the ones before and after it: (B, H, blocks, size, E) to (B, H, blocks, 3·size, E)."""
    beside = F.pad(x, (0, 0, 0, 0, 1, 1))
    return torch.cat([beside[:, :, :-2], x, beside[:, :, 2:]], dim=3)

"""Positions (§3.5): where a token stands, added to what it means. Counted from 0.

Shapes: B batch, T length, D d_model.
"""

import torch
from torch import Tensor, nn

from regard.model.initial import embedding_matrix


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return (length, D) with PE(pos, 2i) = sin(pos / 10000^(2i/d_model)) and PE(pos, 2i+1) the cosine of the same."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / 10_000 ** (even / d_model)  # (length, D/2, rounded up)
    table = torch.empty(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


class SinusoidalPositions(nn.Module):
    """The paper's sines and cosines; the table grows to the longest sequence seen, so there is no limit."""

    def __init__(self, d_model: int, length: int = 256) -> None:
        super().__init__()
        self.d_model = d_model
        self.table: Tensor
        self.register_buffer("table", sinusoids(length, d_model), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Return (length, D), the encodings of `length` positions from `start` on."""
        if start + length > self.table.size(0):
            longer = max(start + length, 2 * self.table.size(0))
            with torch.inference_mode(False):  # a table that grows in search must serve training afterwards
                self.table = sinusoids(longer, self.d_model).to(self.table)
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """A trained row for each position (Table 3, row E); past the last row, that row serves on."""

    def __init__(self, d_model: int, length: int) -> None:
        super().__init__()
        self.table = embedding_matrix(length, d_model)

    def forward(self, start: int, length: int) -> Tensor:
        """Return (length, D), the encodings of `length` positions from `start` on."""
        if start + length <= self.table.size(0):
            return self.table[start : start + length]
        position = torch.arange(start, start + length, device=self.table.device)
        return self.table[position.clamp(max=self.table.size(0) - 1)]

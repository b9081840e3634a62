"""Dropout (§5.4), drawn sixteen random bits an element: on a CPU several times faster than torch's own."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.native.functions import Drawn

LEVELS = 1 << 16
"""Values of sixteen bits."""


def dropped_levels(probability: float) -> int:
    """Return how many of the levels, the lowest ones, drop an element; all of them would overflow int16."""
    return min(round(probability * LEVELS), LEVELS - 1)


def draw(shape: torch.Size, probability: float) -> Drawn:
    """Draw on the CPU which elements to drop, with this probability (to 1/65,536).

    The bits come from a generator of numpy's, three times as fast as torch's, which torch's default generator seeds.
    """
    count = shape.numel()
    seed = int(torch.empty((), dtype=torch.int64).random_())
    bits = torch.from_numpy(np.random.SFC64(seed).random_raw(-(-count // 4)).view(np.int16))[:count]
    return Drawn(bits.view(shape), dropped_levels(probability) - LEVELS // 2, 1 / (1 - probability))


def dropout_mask(shape: torch.Size, probability: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return factors on the CPU: each 0 with this probability, else 1 / (1 - probability)."""
    drawn, mask = draw(shape, probability), torch.empty(shape, dtype=dtype)
    torch.ge(drawn.bits, drawn.bound, out=mask)  # straight to numbers: booleans multiply slowly
    return mask.mul_(drawn.scale)


class _Drop(torch.autograd.Function):
    """x ↦ x · mask."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        mask = dropout_mask(x.shape, probability, x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grads[0] * mask, None


def drop(x: Tensor, probability: float) -> Tensor:
    """Set elements to zero with this probability, and scale up the rest."""
    if probability == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    return _Drop.apply(x, probability)  # type: ignore[no-any-return, no-untyped-call]


class Dropout(nn.Module):
    """Set elements to zero with this probability while training, and scale up the rest."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return drop(x, self.probability) if self.training else x

    def extra_repr(self) -> str:
        """Show the probability in the module's printed form."""
        return f"{self.probability}"


class WordDropout(Dropout):
    """Set whole vectors (…, D) to zero with this probability while training, and leave the rest as they are."""

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        if not self.training or self.probability == 0:
            return x
        kept = drop(x.new_ones(x.shape[:-1]), self.probability) > 0
        return x * kept[..., None].to(x.dtype)

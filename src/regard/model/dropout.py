"""Dropout (§5.4), drawn sixteen random bits an element: on a CPU several times faster than torch's own."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 1 << 16  # values of sixteen bits


def keep_mask(shape: torch.Size, probability: float, device: torch.device) -> Tensor:
    """Return booleans, each False with this probability (to 1/65,536), from torch's default generator."""
    count = shape.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64, device=device)
    words.random_(-(1 << 63), None)  # None: up to the largest, so that all 64 bits are random
    dropped = min(round(probability * _LEVELS), _LEVELS - 1)  # of the levels; all of them would overflow int16
    dropped_below = dropped - _LEVELS // 2
    return (words.view(torch.int16)[:count] >= dropped_below).view(shape)


class _Drop(torch.autograd.Function):
    """x ↦ x · keep / (1 - p); remembers one byte an element."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        keep = keep_mask(x.shape, probability, x.device)
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - probability)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (grads[0] * keep).mul_(ctx.scale), None


class Dropout(nn.Module):
    """Set elements to zero with this probability while training, and scale up the rest."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        if not self.training or self.probability == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.probability)
        return _Drop.apply(x, self.probability)  # type: ignore[no-any-return, no-untyped-call]

    def extra_repr(self) -> str:
        """Show the probability in the module's printed form."""
        return f"{self.probability}"

"""Adam and the paper's learning rate (§5.3)."""

import torch
from torch import nn

from regard.settings import TrainingSettings


def learning_rate(step: int, d_model: int, warmup: int, peak: float | None = None) -> float:
    """Return d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), steps counted from 1 (§5.3).

    With `peak`, the same curve scaled to that value at step `warmup`.
    """
    if peak is None:
        return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
    return float(peak * min((warmup / step) ** 0.5, step / warmup))


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Adam:
    """Return Adam over all weights; the learning rate is set anew at each step."""
    return torch.optim.Adam(
        model.parameters(), lr=0.0, betas=(settings.beta1, settings.beta2), eps=settings.epsilon, fused=True
    )


class Gradients:
    """All gradients of a model in one flat tensor: summing, scaling and clearing them is one operation each."""

    def __init__(self, model: nn.Module) -> None:
        weights = list(model.parameters())
        self.flat = torch.zeros(sum(weight.numel() for weight in weights), device=weights[0].device)
        start = 0
        for weight in weights:
            # Where there is a gradient already, autograd adds to it in place.
            weight.grad = self.flat[start : start + weight.numel()].view_as(weight)
            start += weight.numel()

    def clear(self) -> None:
        """Set them to zero."""
        self.flat.zero_()

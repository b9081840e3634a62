"""Adam and the paper's learning rate (§5.3)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.settings import TrainingSettings

AVERAGE = "average"
"""In a checkpoint, behind a weight's name: its running mean, where one is kept."""


def learning_rate(step: int, d_model: int, settings: TrainingSettings) -> float:
    """Return the learning rate of a step, counted from 1.

    The paper's is d_model^-0.5 · min(step^-0.5, step · warmup^-1.5) (§5.3). A `learning_rate` in the settings scales
    the curve to that value at its peak, step `warmup`; the schedule 'linear' falls from there to zero after the last.
    The steps that lower risk come behind it, with a rate of their own.
    """
    if step > settings.steps:
        return settings.risk_learning_rate * max(0.0, (settings.all_steps + 1 - step) / max(settings.risk_steps, 1))
    warmup, peak = settings.warmup, settings.learning_rate
    if peak is None:
        peak = (d_model * warmup) ** -0.5
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "linear":
        return peak * max(0.0, 1 - (step - warmup) / (settings.steps + 1 - warmup))
    return peak * float((warmup / step) ** 0.5)


def average_decay(settings: TrainingSettings) -> float | None:
    """Return the decay of the running mean of the weights, None if none is kept."""
    return settings.average_decay if settings.average == "exponential" else None


class Adam:
    """Adam over all weights of a model (§5.3).

    The weights are laid into one flat tensor, their gradients into another and Adam's two running means likewise, so
    that summing, scaling, clearing and stepping take a few operations, however many weights there are.
    """

    def __init__(self, model: nn.Module, settings: TrainingSettings) -> None:
        self.beta1, self.beta2, self.epsilon = settings.beta1, settings.beta2, settings.epsilon
        self.weight_decay = settings.weight_decay
        self.weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
        self.gradient, self.mean, self.square = (torch.zeros_like(self.weights) for _ in range(3))
        self.decay = average_decay(settings)
        self.average = None if self.decay is None else self.weights.clone()
        self.steps = 0
        self._places = {}
        start = 0
        for name, weight in model.named_parameters():
            self._places[name] = start, weight.shape
            weight.data = self._view(self.weights, name)
            weight.grad = self._view(self.gradient, name)  # autograd adds to a gradient that is there, in place
            start += weight.numel()

    @torch.no_grad()
    def step(self, rate: float, scale: float = 1.0) -> None:
        """Change the weights by the gradient times `scale`, and clear the gradient.

        m ← β1·m + (1 - β1)·g and v ← β2·v + (1 - β2)·g²; weights ← weights - rate · m̂ / (√v̂ + ε), where m̂ and v̂ are m
        and v divided by 1 - β1^t and 1 - β2^t, for step t. With weight decay d (not in the paper) the weights are first
        multiplied by 1 - rate · d.
        """
        self._change([self.weights], [self.gradient], [self.mean], [self.square], rate, scale)
        if self.average is not None:
            self._average([self.average], [self.weights])
        self.clear()

    def _change(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        means: list[Tensor],
        squares: list[Tensor],
        rate: float,
        scale: float,
    ) -> None:
        self.steps += 1
        device = weights[0].device
        # One pass over memory. (torch.optim.AdamW calls just this, but loads a compiler first, which takes seconds.)
        torch._fused_adamw_(
            weights,
            gradients,
            means,
            squares,
            [],
            [torch.tensor(float(self.steps), device=device) for _ in weights],
            lr=rate,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=self.weight_decay,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=torch.tensor(1 / scale, device=device),
        )

    def _average(self, averages: list[Tensor], weights: list[Tensor]) -> None:
        """Move running means towards weights: mean ← d·mean + (1 - d)·weight, d = min(decay, (t - 1) / (t + 8)).

        So step 1 begins them, and the first weights, far from the last, are soon forgotten.
        """
        assert self.decay is not None
        kept = min(self.decay, (self.steps - 1) / (self.steps + 8))
        for average, weight in zip(averages, weights, strict=True):
            average.lerp_(weight, 1 - kept)

    def begin_anew(self) -> None:
        """Go on from the running mean of the weights, if one is kept, as if no step had been taken yet."""
        if self.average is not None:
            self.weights.copy_(self.average)
        for flat in (self.mean, self.square):
            flat.zero_()
        self.steps = 0

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the model the running mean of its weights while the block runs, if one is kept."""
        if self.average is None:
            yield
            return
        weights = self.weights.clone()
        self.weights.copy_(self.average)
        try:
            yield
        finally:
            self.weights.copy_(weights)

    def clear(self) -> None:
        """Forget the gradient."""
        self.gradient.zero_()

    def state(self) -> dict[str, Tensor]:
        """Return views of all running means, by the names of their weights: what a checkpoint keeps."""
        means = {"mean": self.mean, "square": self.square}
        if self.average is not None:
            means[AVERAGE] = self.average
        return {f"{name}.{key}": self._view(flat, name) for name in self._places for key, flat in means.items()}

    def _view(self, flat: Tensor, name: str) -> Tensor:
        start, shape = self._places[name]
        return flat[start : start + shape.numel()].view(shape)

"""Adam and the paper's learning rate (§5.3)."""

import torch
from torch import Tensor, nn

from regard.settings import TrainingSettings


def learning_rate(step: int, d_model: int, settings: TrainingSettings) -> float:
    """Return the learning rate of a step, counted from 1.

    The paper's is d_model^-0.5 · min(step^-0.5, step · warmup^-1.5) (§5.3). A `learning_rate` in the settings scales
    the curve to that value at its peak, step `warmup`; the schedule 'linear' falls from there to zero after the last.
    """
    warmup, peak = settings.warmup, settings.learning_rate
    if peak is None:
        peak = (d_model * warmup) ** -0.5
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "linear":
        return peak * max(0.0, 1 - (step - warmup) / (settings.steps + 1 - warmup))
    return peak * float((warmup / step) ** 0.5)


class Adam:
    """Adam over all weights of a model (§5.3).

    The weights are laid into one flat tensor, their gradients into another and Adam's two running means likewise, so
    that summing, scaling, clearing and stepping take a few operations, however many weights there are.
    """

    def __init__(self, model: nn.Module, settings: TrainingSettings) -> None:
        self.beta1, self.beta2, self.epsilon = settings.beta1, settings.beta2, settings.epsilon
        self.weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
        self.gradient, self.mean, self.square = (torch.zeros_like(self.weights) for _ in range(3))
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
        and v divided by 1 - β1^t and 1 - β2^t, for step t.
        """
        self._change([self.weights], [self.gradient], [self.mean], [self.square], rate, scale)
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
        # One pass over memory. (torch.optim.Adam calls just this, but loads a compiler first, which takes seconds.)
        torch._fused_adam_(
            weights,
            gradients,
            means,
            squares,
            [],
            [torch.tensor(float(self.steps), device=device) for _ in weights],
            lr=rate,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=0.0,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
            grad_scale=torch.tensor(1 / scale, device=device),
        )

    def clear(self) -> None:
        """Forget the gradient."""
        self.gradient.zero_()

    def state(self) -> dict[str, Tensor]:
        """Return views of the running means, by the names of their weights: what a checkpoint keeps."""
        return {
            f"{name}.{key}": self._view(flat, name)
            for name in self._places
            for key, flat in (("mean", self.mean), ("square", self.square))
        }

    def _view(self, flat: Tensor, name: str) -> Tensor:
        start, shape = self._places[name]
        return flat[start : start + shape.numel()].view(shape)

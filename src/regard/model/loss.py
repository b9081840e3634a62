"""Label-smoothed cross-entropy (§5.4), straight from hidden states.

Shapes: N tokens, D d_model, V vocabulary (rows of weight).

With smoothing ε the target distribution is q(v) = (1 - ε)·[v = y] + ε/V. Neither q nor all of the logits ever exist:
rows are worked off in chunks, and a chunk's gradient, softmax - q, replaces its logits at once, in place. What ε/V adds
to the loss and to the gradients is the same for every token but for a factor, so that it needs no pass over the logits:
Σ_v logit(v) = hidden · Σ_v weight(v).

The rows of weight may be some of the vocabulary's, of which some stand for several (training/output_sample.py): such a
row counts as that many rows of the same logit. Targets stand for themselves.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.native.loss import add_losses

_ROWS = 256  # tokens whose logits are held at a time: enough for products at full speed, few enough for the cache
_LOGITS = 1 << 24  # but no more than these, 64 MiB in float32


class Loss(NamedTuple):
    """Sums over tokens: what is minimised, the smoothed loss, and the plain negative log-likelihood, for perplexity.

    What is minimised is the smoothed loss itself, or has it as a part (consistency.py).
    """

    objective: Tensor
    smoothed: Tensor
    plain: Tensor


def token_loss(hidden: Tensor, targets: Tensor, weight: Tensor, smoothing: float, counts: Tensor | None = None) -> Loss:
    """Return the loss summed over N tokens: hidden (N, D), targets (N,), weight (V, D) of the output layer.

    `counts` (V,): how many tokens each row of weight stands for; one each, if not given.
    """
    learning = torch.is_grad_enabled()  # asked here: inside a Function's forward the answer is always no
    smoothed, plain = _TokenLoss.apply(hidden, targets, weight, smoothing, counts, learning)  # type: ignore[no-untyped-call]
    return Loss(smoothed, smoothed, plain)


def weighted_loss(hidden: Tensor, targets: Tensor, weight: Tensor, factors: Tensor, counts: Tensor | None) -> Loss:
    """Return -log p of N tokens, not smoothed, each times its factor (N,), summed; the rest as for `token_loss`."""
    logits = (hidden @ weight.t()).float() if hidden.dtype != torch.float64 else hidden @ weight.t()  # (N, V)
    if counts is not None:
        logits = logits + counts.log()
    total = (factors * nn.functional.cross_entropy(logits, targets, reduction="none")).sum()
    return Loss(total, total.detach(), total.detach())


class _TokenLoss(torch.autograd.Function):
    """Computes gradients in `forward`, while a chunk's logits are at hand, and hands them out in `backward`."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        targets: Tensor,
        weight: Tensor,
        smoothing: float,
        counts: Tensor | None,
        learning: bool,
    ) -> tuple[Tensor, Tensor]:
        need_hidden, _, need_weight, _, _, _ = ctx.needs_input_grad
        hidden_grad = torch.zeros_like(hidden) if learning and need_hidden else None
        weight_grad = torch.zeros_like(weight) if learning and need_weight else None
        gradients = hidden_grad, weight_grad
        kind = product_type(hidden)
        sums = None
        if kind == torch.float32 and counts is None:
            sums = add_losses(hidden, targets, weight, smoothing, gradients, _LOGITS)
        if sums is None:
            sums = _add_losses(hidden, targets, weight, smoothing, counts, gradients, kind)
        plain, log_sum = sums.unbind()
        smoothed = (1 - smoothing) * plain + smoothing * log_sum
        if smoothing:
            smoothed += spread_evenly(smoothing, hidden, weight, counts, gradients).to(smoothed)
        ctx.gradients = gradients
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, Tensor | None, None, None, None]:
        hidden_grad, weight_grad = hand_out(ctx, grads[0])
        return hidden_grad, None, weight_grad, None, None, None


def spread_evenly(
    share: float, hidden: Tensor, weight: Tensor, counts: Tensor | None, gradients: tuple[Tensor | None, Tensor | None]
) -> Tensor:
    """Return what a share of probability that is spread evenly adds to the loss, and add what it adds to gradients.

    That is -ε/V · Σ_v logit(v), summed over tokens: ε · log Σ_v e^logit(v) is added elsewhere.
    """
    uniform = share / (weight.size(0) if counts is None else counts.sum())  # ε/V
    weight_sum = weight.sum(dim=0) if counts is None else counts.to(weight) @ weight  # (D,)
    hidden_sum = hidden.sum(dim=0)
    hidden_grad, weight_grad = gradients
    if hidden_grad is not None:
        hidden_grad -= uniform * weight_sum
    if weight_grad is not None:
        weight_grad -= uniform * hidden_sum if counts is None else torch.outer(uniform * counts, hidden_sum)
    wide = torch.float64 if hidden.device.type == "cpu" else torch.float32
    return -uniform * (hidden_sum.to(wide) @ weight_sum.to(wide))


def hand_out(ctx: Any, factor: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients for hidden states and weight that `forward` made, times a factor; they can be had once."""
    if ctx.gradients is None:
        raise RuntimeError("the loss hands out its gradients once; compute it again for a second backward")
    hidden_grad, weight_grad = ctx.gradients
    if factor != 1:
        hidden_grad = None if hidden_grad is None else hidden_grad.mul_(factor)
        weight_grad = None if weight_grad is None else weight_grad.mul_(factor)
    ctx.gradients = None
    return hidden_grad, weight_grad


def rows_at_once(vocabulary_size: int) -> int:
    """Return how many tokens' logits are held at a time."""
    return max(1, min(_ROWS, _LOGITS // vocabulary_size))


def _add_losses(
    hidden: Tensor,
    targets: Tensor,
    weight: Tensor,
    smoothing: float,
    counts: Tensor | None,
    gradients: tuple[Tensor | None, Tensor | None],
    kind: torch.dtype,
) -> Tensor:
    """Do what the compiled library does, in torch (regard/native/loss.py)."""
    hidden_grad, weight_grad = gradients
    softmax_type = torch.promote_types(kind, torch.float32)
    matrix = weight.to(kind)
    sums = hidden.new_zeros(2, dtype=torch.float64 if hidden.device.type == "cpu" else torch.float32)
    rows = max(1, min(_ROWS, _LOGITS // weight.size(0)))
    for start in range(0, hidden.size(0), rows):
        part = hidden[start : start + rows].to(kind)
        target = targets[start : start + rows, None]
        logits = (part @ matrix.t()).to(softmax_type)  # (n, V)
        if counts is not None:
            logits += counts.log()
        logit = logits.gather(1, target)
        log_p = torch.log_softmax(logits, dim=1, out=logits)
        right = -log_p.gather(1, target)  # -log p(y), (n, 1)
        sums += torch.stack([right.sum(), (right + logit).sum()])
        if hidden_grad is None and weight_grad is None:
            continue
        gradient = log_p.exp_()
        gradient.scatter_add_(1, target, gradient.new_full((1, 1), smoothing - 1).expand_as(target))
        gradient = gradient.to(kind)
        if hidden_grad is not None:
            hidden_grad[start : start + rows] = gradient @ matrix
        if weight_grad is not None:
            add_product(weight_grad, gradient.t(), part)
    return sums


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left · right to `total`, in place; within the product itself where the types are the same."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def product_type(x: Tensor) -> torch.dtype:
    """The number type in which matrix products run here: autocast's, if it is on."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype

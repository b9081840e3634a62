"""A loss that wants two passes over the same batch, each with dropout of its own, to agree: R-Drop.

Shapes: N tokens, n tokens of a chunk, D d_model, V vocabulary.

Liang and others, 'R-Drop: Regularized Dropout for Neural Networks', 2021; not in the paper. For a token whose two
passes give the distributions p and r, with smoothed losses L(p) and L(r), what is minimised is

    ½ (L(p) + L(r)) + ¼ α (KL(p‖r) + KL(r‖p)).

This is half of what Liang and others write, so that α = 0 is the usual loss and their α is this one (5 in their
translation experiments). With d = log p - log r the gradient for the logits of p is

    ½ (p - q) + ¼ α (p ⊙ (d - KL(p‖r)) + p - r),

where q is the smoothed target of `regard.model.loss`; for r exchange the two, and d changes its sign. As there, rows
are worked off in chunks, and a chunk's gradient takes the place of its logits.
"""

from typing import Any

import torch
from torch import Tensor

from regard.model.loss import Loss, add_product, hand_out, product_type, rows_at_once, spread_evenly

_BLOCK = 1 << 16  # logits that are compared at a time: what is made of them stays in a core's cache


def consistent_loss(
    hidden: Tensor, targets: Tensor, weight: Tensor, smoothing: float, alpha: float, counts: Tensor | None = None
) -> Loss:
    """Return the loss summed over N tokens: hidden (2 N, D), one pass after the other, targets (N,), weight (V, D).

    The smoothed and the plain loss that are reported beside it are the means of the two passes, without the KL terms.
    `counts` (V,): how many tokens each row of weight stands for, as in `regard.model.loss`.
    """
    learning = torch.is_grad_enabled()
    return Loss(*_ConsistentLoss.apply(hidden, targets, weight, smoothing, alpha, counts, learning))  # type: ignore[no-untyped-call]


class _ConsistentLoss(torch.autograd.Function):
    """Computes gradients in `forward`, while a chunk's logits are at hand, and hands them out in `backward`."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        targets: Tensor,
        weight: Tensor,
        smoothing: float,
        alpha: float,
        counts: Tensor | None,
        learning: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        need_hidden, _, need_weight, _, _, _, _ = ctx.needs_input_grad
        tokens, width = targets.size(0), hidden.size(1)
        hidden_grad = torch.empty_like(hidden) if learning and need_hidden else None
        weight_grad = torch.zeros_like(weight) if learning and need_weight else None
        kind = product_type(hidden)
        matrix = weight.to(kind)
        sums = hidden.new_zeros(3, dtype=torch.float64 if hidden.device.type == "cpu" else torch.float32)
        passes = hidden.view(2, tokens, width)

        rows = max(1, rows_at_once(weight.size(0)) // 2)  # of each pass
        for start in range(0, tokens, rows):
            part = passes[:, start : start + rows].reshape(-1, width).to(kind)  # (2 n, D)
            target = targets[start : start + rows, None].repeat(2, 1)
            logits = (part @ matrix.t()).to(torch.promote_types(kind, torch.float32))  # (2 n, V)
            if counts is not None:
                logits += counts.log()
            log_sum = logits.gather(1, target)
            log_p = torch.log_softmax(logits, dim=1, out=logits)
            right = -log_p.gather(1, target)  # -log p(y), (2 n, 1)
            log_sum += right
            divergence, plain = _compare(log_p, alpha / 4), right.sum()
            sums += torch.stack([divergence, (1 - smoothing) * plain + smoothing * log_sum.sum(), plain]).to(sums)
            if hidden_grad is None and weight_grad is None:
                continue
            gradient = log_p  # as `_compare` has left it
            gradient.scatter_add_(1, target, gradient.new_full((1, 1), (smoothing - 1) / 2).expand_as(target))
            gradient = gradient.to(kind)
            if hidden_grad is not None:
                hidden_grad.view(2, tokens, width)[:, start : start + rows] = (gradient @ matrix).view(2, -1, width)
            if weight_grad is not None:
                add_product(weight_grad, gradient.t(), part)
        if smoothing:
            # Half of it for the gradients, as each pass counts half; of the sum both halves are taken below.
            sums[1] += 2 * spread_evenly(smoothing / 2, hidden, weight, counts, (hidden_grad, weight_grad)).to(sums)
        ctx.gradients = hidden_grad, weight_grad
        divergence, smoothed, plain = sums[0], sums[1] / 2, sums[2] / 2
        ctx.mark_non_differentiable(smoothed, plain)
        return smoothed + alpha / 4 * divergence, smoothed, plain

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, Tensor | None, None, None, None, None]:
        hidden_grad, weight_grad = hand_out(ctx, grads[0])
        return hidden_grad, None, weight_grad, None, None, None, None


def _compare(log_p: Tensor, factor: float) -> Tensor:
    """Return the sum of KL(p‖r) + KL(r‖p) over tokens, and turn their log-probabilities into gradients, in place.

    `log_p` (2 n, V) has one pass above the other; it becomes the gradient of ½ log Σ exp(logits) for each row, plus
    `factor` times that of the divergences.
    """
    one, other = log_p.chunk(2)
    rows = max(1, _BLOCK // log_p.size(1)) if log_p.device.type == "cpu" else max(1, one.size(0))
    blocks = [
        _compare_rows(*pair, factor) for pair in zip(torch.split(one, rows), torch.split(other, rows), strict=True)
    ]
    return torch.stack(blocks).sum()


def _compare_rows(log_p: Tensor, log_r: Tensor, factor: float) -> Tensor:
    """Do the same for some rows: `log_p` and `log_r` are (n, V)."""
    p, r = log_p.exp(), log_r.exp()
    difference = log_p.sub_(log_r)
    p_weighted = p * difference
    r_weighted = difference.mul_(r)
    to_r = p_weighted.sum(dim=1, keepdim=True)  # KL(p‖r), (n, 1)
    to_p = -r_weighted.sum(dim=1, keepdim=True)
    torch.mul(r, 0.5 + factor * (1 - to_p), out=log_r).sub_(r_weighted, alpha=factor).sub_(p, alpha=factor)
    torch.mul(p, 0.5 + factor * (1 - to_r), out=log_p).add_(p_weighted, alpha=factor).sub_(r, alpha=factor)
    return (to_r + to_p).sum()
